/** What a drag from outside of the page offers. WebKitGTK shows files as a list of addresses, the others as files. */
const outside = ['Files', 'text/uri-list'];

/**
 * Keeps a file that is dropped on the page from replacing it: what every web view does by itself. In the window the shell refuses
 * to navigate as well; here the pointer says so, before anything is let go.
 */
export function refuseDrops(page: Document): void {
  const refuse = (event: DragEvent) => {
    const transfer = event.dataTransfer;
    if (!transfer || !outside.some((type) => transfer.types.includes(type))) return; // text, within a field
    transfer.dropEffect = 'none';
    event.preventDefault();
  };
  for (const type of ['dragenter', 'dragover', 'drop'] as const) page.addEventListener(type, refuse, true);
}
