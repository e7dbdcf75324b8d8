import { reveal } from '../content/reveal';
import { lookup, t } from '../strings/t';
import { bytes } from '../ui/format';
import type { Attachment } from '../api/records';

/** Returns the name of a file with hidden characters revealed, so that no name reads as another. */
export const nameOf = ({ filename }: Pick<Attachment, 'filename'>): string => reveal(filename);

/** Returns the path of a file, or the name where a file has no path. */
export const placeOf = ({ path, filename }: Pick<Attachment, 'path' | 'filename'>): string =>
  reveal(path ?? filename);

/** Returns the text beside a name: the size, or that the attachment is a directory. */
export function measureOf(of: Pick<Attachment, 'directory' | 'size'>): string {
  return of.directory ? t('attach.directory') : bytes(of.size);
}

export interface Note {
  text: string;
  /** warn: the person may want to act. muted: for information. */
  tone: 'warn' | 'muted';
}

/** Notes that only inform: the file reaches the agent all the same. */
const calm = new Set(['copied', 'downscaled', 'directory', 'named', 'no_embedded', 'too_large_to_embed']);

/** Returns the notes about how a file will reach the agent. */
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
