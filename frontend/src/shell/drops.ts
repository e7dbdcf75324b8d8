import { OnFileDrop } from '../../wailsjs/runtime/runtime';
import { surface } from './wails';

// Files that are dragged onto the page from outside. Every web view would by itself leave the page for them; here they go to whoever
// accepts them, or are refused while the pointer still says so.
//
// In a browser a drop brings the files themselves. In the window it brings nothing that a page may read, and the shell tells the paths
// by an event of its own: for real drops, but also again for one that was abandoned earlier, when something is dragged within the
// page. So the event counts only straight after a drop from outside that the page itself has seen.

/** What was dropped: paths in the window; in a browser files, and the names of directories, which it cannot hand on. */
export interface Dropped {
  paths: string[];
  files: File[];
  directories: string[];
}

export interface DropTarget {
  /** Where it takes them, before all who take them anywhere; everywhere when it is left out. */
  within?: () => Element | undefined;
  /** Something from outside is above the page; how many files, where the engine tells, and above what. */
  over: (count: number | undefined, at: Element | undefined) => void;
  /** It is not any more. */
  leave: () => void;
  drop: (what: Dropped) => void;
}

/** What a drag from outside of the page offers. WebKitGTK shows files as a list of addresses, the others as files. */
const outside = ['Files', 'text/uri-list'];
/** How long after a drop the shell may take to tell its paths. */
const tellWithin = 2_000;

let targets: readonly DropTarget[] = [];

/** Takes what is dropped from now on; gives what ends it. */
export function acceptDrops(target: DropTarget): () => void {
  targets = [...targets, target];
  return () => {
    target.leave();
    targets = targets.filter((one) => one !== target);
  };
}

/** Watches the page for its whole life. */
export function watchDrops(page: Document): void {
  const paths = surface() === 'window';
  let within = false; // a drag that began in the page itself
  let entered: EventTarget | null = null; // the element that a drag is above
  let above: DropTarget | undefined; // who was told so last
  let armed: { at: number; target: DropTarget } | undefined;

  const offered = (event: DragEvent) => outside.some((type) => event.dataTransfer?.types.includes(type));
  /** Who takes it; nobody while a dialog is open, or where no files are offered that could be had. */
  const takes = (event: DragEvent) => {
    if (within || page.querySelector('dialog[open]')) return undefined;
    return paths || event.dataTransfer?.types.includes('Files') ? takerAt(event.target) : undefined;
  };
  /** The last one that takes what hangs above an element, and nothing else; else the last that takes it anywhere. */
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
    // The next element is entered before the last one is left, so this is the end of the page. Not every engine tells where it goes on.
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
  // What was dragged may be gone from the page before its end, and WebKitGTK tells of some drags neither that they left nor that they were
  // dropped; while something is dragged no pointer moves.
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

/** A link that was dropped comes as an empty path, and a name with a line break as two halves. */
export function isAbsolute(path: string): boolean {
  return /^\/|^[A-Za-z]:[\\/]|^\\\\/.test(path);
}

function countOf({ items }: DataTransfer): number | undefined {
  const files = [...((items as DataTransferItemList | undefined) ?? [])].filter(
    (item) => item.kind === 'file',
  ).length;
  return files > 0 ? files : undefined;
}

/** The files of a drop or a paste. A directory looks like a file there, but cannot be read. */
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
