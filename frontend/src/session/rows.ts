import type { Turn } from '../api/records';
import type { Item } from '../state/transcript';
import { isWork, joins, terminalsOf } from './work';

// The rows of a transcript: texts and other entries, runs of work, and a footer after each turn.

export type Row =
  | { kind: 'entry'; key: string; item: Item; items: readonly Item[] }
  | {
      kind: 'work';
      key: string;
      items: readonly Item[];
      /** The items without the terminals that are shown inside a tool call. */
      shown: readonly Item[];
    }
  | { kind: 'footer'; key: string; turn: Turn; items: readonly Item[] };

/** Returns the item that shows an entry: a terminal is shown inside the tool call that names it. */
export function hostOf(item: Item, items: readonly Item[]): Item {
  const id = item.entry.terminal?.terminalId;
  const tool = id === undefined ? undefined : items.find((one) => terminalsOf(one).includes(id));
  return tool ?? item;
}

/** Reports whether a row shows an item. */
export function holds(row: Row, id: string): boolean {
  return row.kind !== 'footer' && row.items.some((one) => one.id === id);
}

/** Returns the sequence numbers of all entries in a row. */
export function seqsOf(row: Row, programs: ReadonlyMap<string, Item>): number[] {
  if (row.kind === 'footer') return [];
  const seqs = row.items.flatMap((item) => [
    item.seq,
    ...terminalsOf(item).flatMap((id) => programs.get(id)?.seq ?? []),
  ]);
  return [...new Set(seqs)];
}

const single = new WeakMap<Item, Row>();

/** Returns the same row object for the same item, so that the row is not rendered again. */
function rowOf(item: Item): Row {
  let row = single.get(item);
  if (!row) single.set(item, (row = { kind: 'entry', key: item.id, item, items: [item] }));
  return row;
}

const inRun = new WeakMap<Item, Row & { kind: 'work' }>();

/**
 * Returns the row of a run. A run keeps its key when it grows at either end, so that it stays in place and as a person has opened it.
 * `used` has the keys of earlier runs: an entry that came late may have split a run.
 */
function runOf(items: readonly Item[], shown: readonly Item[], used: Set<string>): Row {
  const held = items.map((item) => inRun.get(item)).find((row) => row && !used.has(row.key));
  const key = held?.key ?? `work:${items[0]?.id ?? ''}`;
  used.add(key);
  if (held && same(held.items, items) && same(held.shown, shown)) return held;
  const row = { kind: 'work' as const, key, items, shown };
  for (const item of items) inRun.set(item, row);
  return row;
}

const same = (a: readonly Item[], b: readonly Item[]) =>
  a.length === b.length && a.every((item, n) => item === b[n]);

export function rows(items: readonly Item[], turns: ReadonlyMap<string, Turn>): Row[] {
  const result: Row[] = [];
  const inTools = new Set(items.flatMap(terminalsOf));
  const used = new Set<string>();
  let run: Item[] = [];
  let inTurn: Item[] = [];

  const endRun = () => {
    const shown = run.filter(({ entry }) => !entry.terminal || !inTools.has(entry.terminal.terminalId));
    if (shown.length > 0) result.push(runOf(run, shown, used));
    run = [];
  };
  const endTurn = () => {
    endRun();
    const turn = turns.get(inTurn[0]?.entry.turn ?? '');
    if (turn?.state === 'done')
      result.push({ kind: 'footer', key: `footer:${turn.id}`, turn, items: inTurn });
    inTurn = [];
  };

  for (const item of items) {
    const turn = item.entry.turn;
    const before = run.at(-1);
    if (before && !joins(before, item)) endRun();
    if (inTurn.length > 0 && inTurn[0]?.entry.turn !== turn) endTurn();
    if (isWork(item)) run.push(item);
    else result.push(rowOf(item));
    if (turn !== undefined) inTurn.push(item);
  }
  if (inTurn.length > 0) endTurn();
  endRun();
  return dedupeFooters(result);
}

/** Entries without a turn may stand between entries of a turn. The footer stays only after the last of them. */
function dedupeFooters(list: Row[]): Row[] {
  const last = new Map<string, number>();
  list.forEach((row, index) => {
    if (row.kind === 'footer') last.set(row.key, index);
  });
  const gathered = new Map<string, readonly Item[]>();
  return list.filter((row, index) => {
    if (row.kind !== 'footer') return true;
    const items = [...(gathered.get(row.key) ?? []), ...row.items];
    gathered.set(row.key, items);
    row.items = items;
    return last.get(row.key) === index;
  });
}
