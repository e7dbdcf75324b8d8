import { asApiError } from '../api/errors';
import { reveal } from '../content/reveal';
import { lookup, t } from '../strings/t';
import { baseName } from '../ui/format';
import type { AttachProblem } from '../api/records';

// The limits of attachments, and their texts. The server decides; the page only refuses early the files that the server would refuse too.

export const mostFiles = 100;
export const mostBytes = 50 * 1024 * 1024;
export const mostText = '50 MiB';

/** Returns the text that says why a file cannot be attached. */
export function troubleText(of: string, thrown: unknown): string {
  const error = asApiError(thrown);
  const name = reveal(of);
  const target = reveal(error.params['target'] ?? t('attach.elsewhere'));
  const params = { ...error.params, name, target };
  return (
    lookup(`error.${error.code}`, params) ?? t('attach.problem', { name, detail: error.detail || error.code })
  );
}

/** Returns the requested path that a problem is about; undefined when two paths match. */
export function pathOf({ name, params }: AttachProblem, asked: readonly string[]): string | undefined {
  const exact = asked.find((path) => path === (params?.['path'] ?? name));
  if (exact !== undefined) return exact;
  const alike = asked.filter((path) => baseName(path) === baseName(name));
  return alike.length === 1 ? alike[0] : undefined; // two paths have this name
}

/** Makes up a file name for pasted data that has none. */
export function pastedName(type: string, at: Date): string {
  const two = (value: number) => String(value).padStart(2, '0');
  const stamp = `${at.getFullYear()}-${two(at.getMonth() + 1)}-${two(at.getDate())}-${two(at.getHours())}${two(at.getMinutes())}${two(at.getSeconds())}`;
  return `pasted-${stamp}.${endings[type] ?? (type.startsWith('text/') ? 'txt' : 'bin')}`;
}

const endings: Readonly<Record<string, string>> = {
  'image/png': 'png',
  'image/jpeg': 'jpg',
  'image/gif': 'gif',
  'image/webp': 'webp',
  'image/bmp': 'bmp',
  'image/tiff': 'tiff',
};

/** Returns pasted data as files. Browsers give every picture of the clipboard the same name, so pictures are renamed. */
export function fromPaste(found: { files: File[] } | { long: string }, at = new Date()): File[] {
  if ('long' in found) return [new File([found.long], pastedName('text/plain', at), { type: 'text/plain' })];
  return found.files.map((file) =>
    file.name === '' || file.name === 'image.png'
      ? new File([file], pastedName(file.type, at), { type: file.type })
      : file,
  );
}
