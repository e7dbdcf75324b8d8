import { isObject } from '../content/blocks';
import { parts } from '../content/tool';
import type { Item } from '../state/transcript';
import '../strings/work';
import { t, tn } from '../strings/t';
import { between } from '../ui/format';

// Runs of work: what an agent does between two texts. A run is one row of the transcript, and folds when it has several calls.

const kinds = new Set(['tool', 'terminal', 'thought', 'rule', 'request', 'file']);

export const isWork = ({ entry }: Item): boolean => kinds.has(entry.kind);

/** Reports whether an item belongs to the run of the item before it. */
export function joins(before: Item, item: Item): boolean {
  return isWork(before) && isWork(item) && before.entry.turn === item.entry.turn;
}

/** Returns the index at which the run of an item begins. Any other item is a run of its own. */
export function beginOf(items: readonly Item[], at: number): number {
  let from = at;
  for (let item = items[at]; item && from > 0; from--) {
    const before = items[from - 1];
    if (!before || !joins(before, item)) break;
    item = before;
  }
  return from;
}

/** Returns the index behind the run of an item. */
export function endOf(items: readonly Item[], at: number): number {
  let to = at + 1;
  for (let item = items[at]; item && to < items.length; to++) {
    const next = items[to];
    if (!next || !joins(item, next)) break;
    item = next;
  }
  return to;
}

/** Returns the ids of the terminals inside a tool call. */
export function terminalsOf({ entry }: Item): string[] {
  return (entry.tool?.content ?? []).flatMap((content: unknown) =>
    isObject(content) && content['type'] === 'terminal' && typeof content['terminalId'] === 'string'
      ? [content['terminalId']]
      : [],
  );
}

/** A run without several calls folds only when it is longer than this. */
const few = 6;

/** Reports whether the shown items of a run fold into one row. */
export function folds(shown: readonly Item[]): boolean {
  if (shown.length > few) return true;
  const calls = shown.filter(({ entry }) => entry.kind === 'tool' || entry.kind === 'terminal');
  // A file that a call has us write belongs to the call.
  const written = new Set(calls.flatMap((item) => objectsOf(item, 'edit')));
  const alone = shown.filter(({ entry }) => entry.file && !written.has(entry.file.path));
  return calls.length + alone.length > 1;
}

export function failed({ entry: { tool, terminal } }: Item): boolean {
  if (terminal) return !terminal.running && Boolean(terminal.signal ?? terminal.exitCode);
  return tool?.status === 'failed';
}

export function running({ entry: { tool, terminal } }: Item): boolean {
  return terminal?.running ?? ['pending', 'in_progress'].includes(tool?.status ?? '');
}

/** A run by who did what. */
export interface Grouped {
  /** The entries of the agent itself. */
  roots: readonly Item[];
  /** The entries of each subagent, by the id of the entry of the agent that started it. Those of its own subagents are among them. */
  inner: ReadonlyMap<string, readonly Item[]>;
  /** The entry of the agent that an entry belongs to. */
  rootOf: (item: Item) => Item;
}

/** Groups a run by its subagents, which may be at work at the same time. */
export function grouped(items: readonly Item[]): Grouped {
  const calls = new Map<string, { item: Item; at: number }>();
  items.forEach((item, at) => {
    if (item.entry.tool) calls.set(item.entry.tool.toolCallId, { item, at });
  });
  const rootOf = (item: Item): Item => {
    let root = item;
    let before = calls.get(item.entry.tool?.toolCallId ?? '')?.at ?? 0;
    // A subagent's call stands behind the one that started it. Calls that name each other have no way up.
    for (;;) {
      const parent = calls.get(root.entry.tool?.parent ?? '');
      if (!parent || parent.at >= before) return root;
      before = parent.at;
      root = parent.item;
    }
  };
  const roots: Item[] = [];
  const inner = new Map<string, Item[]>();
  for (const item of items) {
    const root = rootOf(item);
    if (root === item) roots.push(item);
    else inner.set(root.id, [...(inner.get(root.id) ?? []), item]);
  }
  return { roots, inner, rootOf };
}

/** The number of failed calls of a folded run that are visible. */
export const mostFailed = 5;

/** Returns the last failed calls of a run, which stay visible while it is folded. */
export function lastFailed(shown: readonly Item[]): Item[] {
  return shown.filter(failed).slice(-mostFailed);
}

const done = ['read', 'search', 'edit', 'delete', 'move', 'execute', 'fetch'] as const;
type Done = (typeof done)[number] | 'subagent' | 'any';
/** Kinds whose number is a number of files. */
const ofFiles: readonly Done[] = ['read', 'edit', 'delete', 'move'];

function kindOf({ entry: { kind, tool } }: Item): Done | undefined {
  if (kind === 'terminal') return 'execute';
  if (kind === 'file') return 'edit';
  if (!tool) return undefined;
  return done.find((one) => one === tool.kind) ?? 'any';
}

/** Returns what an item counts as: its files, or itself. */
function objectsOf({ id, entry: { tool, file } }: Item, kind: Done): string[] {
  if (file) return [file.path];
  if (!tool || !ofFiles.includes(kind)) return [id];
  const paths = (tool.locations ?? []).map(({ path }) => path);
  if (paths.length === 0)
    for (const part of parts(tool)) if (part.kind === 'diff' && part.path) paths.push(part.path);
  return paths.length > 0 ? paths : [id];
}

interface Summary {
  /** What was done, such as "Read 4 files, edited 2". */
  words: string;
  /** The kind of all calls, where they have one. */
  kind: string;
  failed: number;
  /** Milliseconds in which calls were at work. */
  took: number;
}

/** Returns a run in words. */
export function summaryOf(shown: readonly Item[]): Summary {
  const counts = new Map<Done, Set<string>>();
  const parents = new Set(shown.map(({ entry }) => entry.tool?.parent));
  for (const item of shown) {
    const starts = item.entry.tool && parents.has(item.entry.tool.toolCallId);
    const kind = starts ? 'subagent' : kindOf(item);
    if (!kind) continue;
    const objects = counts.get(kind) ?? new Set();
    for (const object of objectsOf(item, kind)) objects.add(object);
    counts.set(kind, objects);
  }
  const said: string[] = [];
  let files = false;
  for (const kind of [...done, 'subagent', 'any'] as const) {
    const n = counts.get(kind)?.size ?? 0;
    if (n === 0) continue;
    // "Read 4 files, edited 2": the word is said once.
    if (kind === 'search') said.push(files ? t('work.search.more', { n }) : tn('work.search', n));
    else if (kind === 'edit' || kind === 'delete' || kind === 'move')
      said.push(files ? t(`work.${kind}.more`, { n }) : tn(`work.${kind}`, n));
    else said.push(tn(`work.${kind}`, n));
    files ||= ofFiles.includes(kind);
  }
  const words = said.length > 0 ? said.join(', ') : tn('work.steps', shown.length);
  return {
    words: words.charAt(0).toUpperCase() + words.slice(1),
    kind: counts.size === 1 ? ([...counts.keys()][0] ?? 'any') : 'any',
    failed: shown.filter(failed).length,
    took: tookBy(shown),
  };
}

/** Returns for how long calls were at work. Calls at the same time count once, and waits between calls do not count. */
function tookBy(shown: readonly Item[]): number {
  const spans = shown.flatMap(({ entry: { tool, terminal } }) => {
    const of = tool ?? terminal;
    return of?.endedAt ? [{ from: of.startedAt, to: of.endedAt }] : [];
  });
  spans.sort((a, b) => Date.parse(a.from) - Date.parse(b.from));
  let sum = 0;
  let end = '';
  for (const { from, to } of spans) {
    if (end === '' || Date.parse(from) >= Date.parse(end)) sum += between(from, to);
    else if (Date.parse(to) > Date.parse(end)) sum += between(end, to);
    else continue;
    end = to;
  }
  return sum;
}
