import type { ExportFormat } from '../api/records';
export const exportFormats: readonly ExportFormat[] = ['md', 'json', 'recording'];

/** How long the browser may take to read what it was given. */
const heldFor = 60_000;

/** Gives the person a file, as a download. Only in a browser: in the window it ends in nothing, see saveExport. */
export function saveFile(name: string, content: Blob): void {
  const address = URL.createObjectURL(content);
  const link = document.createElement('a');
  link.href = address;
  link.download = name;
  link.click();
  setTimeout(() => URL.revokeObjectURL(address), heldFor);
}
