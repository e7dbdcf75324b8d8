import { OnFileDrop } from '../../wailsjs/runtime/runtime';
import { surface } from './wails';

// Files dragged onto the page from outside. By default a web view leaves the page and opens such a file; here the page gives the files to
// the component under the pointer, or refuses them visibly.
// In a browser the drop event has the files. In the window the event has nothing readable, and the shell sends the paths in an event of its
// own: after a real drop, but also again for an abandoned drag when something is dragged within the page. So the paths count only shortly
// after a drop from outside that the page has seen.

/** The dropped paths (window), or the files and names of directories (browser). A browser cannot read a directory. */
export interface Dropped {
  paths: string[];
  files: File[];
  directories: string[];
}

export interface DropTarget {
  /** The area that accepts drops. A target with an area wins over targets for the whole page. */
  within?: () => Element | undefined;
  /** Called while something is dragged over the target. count is the number of files, where the engine reports it. */
  over: (count: number | undefined, at: Element | undefined) => void;
  /** The drag has left the target or ended. */
  leave: () => void;
  drop: (what: Dropped) => void;
}

/** The types of a drag from outside. WebKitGTK offers files as a list of addresses. */
const outside = ['Files', 'text/uri-list'];
/** The longest time in milliseconds from a drop to the shell's paths. */
const tellWithin = 2_000;

let targets: readonly DropTarget[] = [];

/** Registers a target for drops. The returned function removes the target. */
export function acceptDrops(target: DropTarget): () => void {
  targets = [...targets, target];
  return () => {
    target.leave();
    targets = targets.filter((one) => one !== target);
  };
}

/** Listens for drags. Called once, for the life of the page. */
export function watchDrops(page: Document): void {
  const paths = surface() === 'window';
  let within = false; // a drag that began in the page itself
  let entered: EventTarget | null = null; // the element under the drag
  let above: DropTarget | undefined; // the target whose over was called last
  let armed: { at: number; target: DropTarget } | undefined;

  const offered = (event: DragEvent) => outside.some((type) => event.dataTransfer?.types.includes(type));
  /** Returns the target of a drag; undefined while a dialog is open, or where the drag offers no readable files. */
  const takes = (event: DragEvent) => {
    if (within || page.querySelector('dialog[open]')) return undefined;
    return paths || event.dataTransfer?.types.includes('Files') ? takerAt(event.target) : undefined;
  };
  /** Returns the last target whose area contains the element, otherwise the last target for the whole page. */
  const takerAt = (at: EventTarget | null) =>
    targets.findLast((one) => one.within && at instanceof Node && one.within()?.contains(at) === true) ??
    targets.findLast((one) => !one.within);
  const leaveAbove = () => {
    above?.leave();
    above = undefined;
  };

  const over = (event: DragEvent) => {
    entered = event.target;
    if (!event.dataTransfer || !offered(event)) return; // text, within a field
    event.preventDefault();
    const target = takes(event);
    event.dataTransfer.dropEffect = target ? 'copy' : 'none';
    if (target !== above) leaveAbove();
    above = target;
    target?.over(countOf(event.dataTransfer), event.target instanceof Element ? event.target : undefined);
  };
  const leave = (event: DragEvent) => {
    // The next element is entered before the last is left, so here the drag leaves the page. Not every engine sets relatedTarget.
    if (event.target === entered) leaveAbove();
  };
  const drop = (event: DragEvent) => {
    const target = takes(event);
    within = false;
    leaveAbove();
    if (!event.dataTransfer || !offered(event)) return;
    event.preventDefault();
    if (!target) return;
    if (paths) armed = { at: performance.now(), target };
    else target.drop(droppedFiles(event.dataTransfer));
  };

  page.addEventListener('dragstart', () => (within = true), true);
  page.addEventListener('dragend', () => (within = false), true);
  // Ends the drag state when a pointer moves, which never happens during a drag. WebKitGTK reports neither a leave nor a drop for some
  // drags, and the dragged element may be removed before dragend.
  page.addEventListener(
    'pointermove',
    () => {
      within = false;
      leaveAbove();
    },
    true,
  );
  page.addEventListener('dragenter', over, true);
  page.addEventListener('dragover', over, true);
  page.addEventListener('dragleave', leave, true);
  page.addEventListener('drop', drop, true);
  if (!paths) return;
  OnFileDrop((_x, _y, told) => {
    const drop = armed;
    armed = undefined;
    if (!drop || performance.now() - drop.at > tellWithin) return;
    const real = (told as string[] | null)?.filter(isAbsolute) ?? [];
    if (real.length > 0) drop.target.drop({ paths: real, files: [], directories: [] });
  }, false);
}

/** Reports whether a path is absolute. A dropped link arrives as an empty path, and a name with a line break as two halves. */
export function isAbsolute(path: string): boolean {
  return /^\/|^[A-Za-z]:[\\/]|^\\\\/.test(path);
}

function countOf({ items }: DataTransfer): number | undefined {
  const files = [...((items as DataTransferItemList | undefined) ?? [])].filter(
    (item) => item.kind === 'file',
  ).length;
  return files > 0 ? files : undefined;
}

/** Returns the files of a drop or paste. A directory is listed as a file, but cannot be read. */
export function droppedFiles(transfer: DataTransfer): Dropped {
  const dropped: Dropped = { paths: [], files: [], directories: [] };
  for (const item of transfer.items) {
    if (item.kind !== 'file') continue;
    const directory = item.webkitGetAsEntry()?.isDirectory === true;
    const file = item.getAsFile();
    if (file && directory) dropped.directories.push(file.name);
    else if (file) dropped.files.push(file);
  }
  return dropped;
}
