import type { ExportFormat } from '../api/records';
export const exportFormats: readonly ExportFormat[] = ['md', 'json', 'recording'];

/** Milliseconds that the browser has to read the file. */
const heldFor = 60_000;

/** Downloads a file in a browser. The window's engine ignores downloads; see saveExport. */
export function saveFile(name: string, content: Blob): void {
  const address = URL.createObjectURL(content);
  const link = document.createElement('a');
  link.href = address;
  link.download = name;
  link.click();
  setTimeout(() => URL.revokeObjectURL(address), heldFor);
}
