import type { ExportFormat } from '../api/records';
import { surface } from './wails';

export const exportFormats: readonly ExportFormat[] = ['md', 'json', 'recording'];

/** Whether a file can be given to the person. In the window a download ends in nothing: the shell lets the page go nowhere. */
export function canSave(): boolean {
  return surface() === 'browser';
}

/** How long the browser may take to read what it was given. */
const heldFor = 60_000;

/** Gives the person a file, as a download. */
export function saveFile(name: string, content: Blob): void {
  const address = URL.createObjectURL(content);
  const link = document.createElement('a');
  link.href = address;
  link.download = name;
  link.click();
  setTimeout(() => URL.revokeObjectURL(address), heldFor);
}
