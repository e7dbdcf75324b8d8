import { reveal } from '../content/reveal';
import { lookup, t } from '../strings/t';
import { bytes } from '../ui/format';
import type { Attachment } from '../api/records';

/** The name of a file, as it is shown: none reads otherwise than it is. */
export const nameOf = ({ filename }: Pick<Attachment, 'filename'>): string => reveal(filename);

/** Where it lies, or its name. */
export const placeOf = ({ path, filename }: Pick<Attachment, 'path' | 'filename'>): string =>
  reveal(path ?? filename);

/** What stands beside a name: its size, or that it is a directory. */
export function measureOf(of: Pick<Attachment, 'directory' | 'size'>): string {
  return of.directory ? t('attach.directory') : bytes(of.size);
}

export interface Note {
  text: string;
  /** Whether the person may want to do something about it. */
  tone: 'warn' | 'muted';
}

/** These say how it is, and nothing is lost by it. */
const calm = new Set(['copied', 'downscaled', 'directory', 'named', 'no_embedded', 'too_large_to_embed']);

/** What there is to know of how a file will travel to an agent. */
export function notesOf({ warning, copied, missing }: Attachment, agent: string): Note[] {
  const notes: Note[] = [];
  if (missing) notes.push({ text: t('attach.missing'), tone: 'warn' });
  if (warning && warning !== 'copied') {
    const text =
      lookup(`attach.warning.${warning}`, { agent }) ?? t('attach.warning.unknown', { agent, code: warning });
    notes.push({ text, tone: calm.has(warning) ? 'muted' : 'warn' });
  }
  if (copied || warning === 'copied') notes.push({ text: t('attach.copied', { agent }), tone: 'muted' });
  return notes;
}
