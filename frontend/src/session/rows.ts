import type { Turn } from '../api/records';
import { isObject } from '../content/blocks';
import type { Item } from '../state/transcript';

// The rows of a transcript: entries, runs of reads folded into one row, and a footer after each turn.

export type Row =
  | { kind: 'entry'; key: string; item: Item }
  | { kind: 'reads'; key: string; items: Item[] }
  | { kind: 'footer'; key: string; turn: Turn; items: Item[] };

const foldFrom = 3;

function isQuietRead(item: Item): boolean {
  const { entry } = item;
  return entry.kind === 'tool' && entry.tool?.kind === 'read' && entry.tool.status === 'completed';
}

/** Returns the ids of the terminals inside a tool call. */
function terminalsOf({ entry }: Item): string[] {
  return (entry.tool?.content ?? []).flatMap((content: unknown) =>
    isObject(content) && content['type'] === 'terminal' && typeof content['terminalId'] === 'string'
      ? [content['terminalId']]
      : [],
  );
}

/** Returns the item that shows an entry: a terminal is shown inside the tool call that names it. */
export function hostOf(item: Item, items: readonly Item[]): Item {
  const id = item.entry.terminal?.terminalId;
  const tool = id === undefined ? undefined : items.find((one) => terminalsOf(one).includes(id));
  return tool ?? item;
}

/** Returns the sequence numbers of all entries in a row. */
export function seqsOf(row: Row, programs: ReadonlyMap<string, Item>): number[] {
  if (row.kind === 'footer') return [];
  return (row.kind === 'entry' ? [row.item] : row.items).flatMap((item) => [
    item.seq,
    ...terminalsOf(item).flatMap((id) => programs.get(id)?.seq ?? []),
  ]);
}

const single = new WeakMap<Item, Row>();

/** Returns the same row object for the same item, so that the row is not rendered again. */
function rowOf(item: Item): Row {
  let row = single.get(item);
  if (!row) single.set(item, (row = { kind: 'entry', key: item.id, item }));
  return row;
}

export function rows(items: readonly Item[], turns: ReadonlyMap<string, Turn>): Row[] {
  const result: Row[] = [];
  const inTools = new Set(items.flatMap(terminalsOf));
  let reads: Item[] = [];
  let inTurn: Item[] = [];

  const endReads = () => {
    const [first] = reads;
    if (first && reads.length >= foldFrom) {
      result.push({ kind: 'reads', key: `reads:${first.id}`, items: reads });
    } else {
      result.push(...reads.map(rowOf));
    }
    reads = [];
  };
  const endTurn = () => {
    endReads();
    const turn = turns.get(inTurn[0]?.entry.turn ?? '');
    if (turn?.state === 'done')
      result.push({ kind: 'footer', key: `footer:${turn.id}`, turn, items: inTurn });
    inTurn = [];
  };

  for (const item of items) {
    if (item.entry.terminal && inTools.has(item.entry.terminal.terminalId)) continue;
    const turn = item.entry.turn;
    if (inTurn.length > 0 && inTurn[0]?.entry.turn !== turn) endTurn();
    if (isQuietRead(item)) {
      reads.push(item);
    } else {
      endReads();
      result.push(rowOf(item));
    }
    if (turn !== undefined) inTurn.push(item);
  }
  if (inTurn.length > 0) endTurn();
  endReads();
  return dedupeFooters(result);
}

/** Entries without a turn may stand between entries of a turn. The footer stays only after the last of them. */
function dedupeFooters(list: Row[]): Row[] {
  const last = new Map<string, number>();
  list.forEach((row, index) => {
    if (row.kind === 'footer') last.set(row.key, index);
  });
  const gathered = new Map<string, Item[]>();
  return list.filter((row, index) => {
    if (row.kind !== 'footer') return true;
    const items = [...(gathered.get(row.key) ?? []), ...row.items];
    gathered.set(row.key, items);
    row.items = items;
    return last.get(row.key) === index;
  });
}
