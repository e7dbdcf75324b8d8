import { describe, expect, test } from 'vitest';
import type { Entry } from '../api/records';
import { entry, tool, turn } from '../test/records';
import { hostOf, rows, seqsOf } from './rows';
import { plainItem, type Item } from '../state/transcript';

const list = (entries: Entry[], turns = [turn()]) =>
  rows(entries.map(plainItem), new Map(turns.map((one) => [one.id, one]))).map((row) => row.key);
const read = (seq: number, part = {}) =>
  entry(seq, { kind: 'tool', turn: 't1', tool: tool({ kind: 'read', ...part }) });

describe('work', () => {
  const thought = (seq: number) => entry(seq, { kind: 'thought', turn: 't1' });
  const said = (seq: number) => entry(seq, { turn: 't1' });

  test('between two texts is a row', () => {
    expect(list([said(1), read(2), thought(3), read(4), said(5), read(6)], [])).toEqual([
      'e1',
      'work:e2',
      'e5',
      'work:e6',
    ]);
  });

  test('of two turns are two rows', () => {
    const second = [4, 5, 6].map((seq) => ({ ...read(seq), turn: 't2' }));
    expect(list([read(1), read(2), read(3), ...second], [])).toEqual(['work:e1', 'work:e4']);
  });

  test('keeps its row when it grows at either end, so that what is open stays open', () => {
    const items = [1, 2, 3].map((seq) => plainItem(read(seq)));
    const keys = (from: number, to: number) => rows(items.slice(from, to), new Map()).map(({ key }) => key);
    expect(keys(1, 2)).toEqual(['work:e2']);
    expect(keys(1, 3)).toEqual(['work:e2']);
    expect(keys(0, 3)).toEqual(['work:e2']);
    expect(keys(2, 3)).toEqual(['work:e2']);
  });

  test('is the same row while nothing is added, so that it is not rendered again', () => {
    const items = [1, 2].map((seq) => plainItem(read(seq)));
    expect(rows(items, new Map())[0]).toBe(rows(items, new Map())[0]);
    expect(rows([...items, plainItem(read(3))], new Map())[0]).not.toBe(rows(items, new Map())[0]);
  });

  test('that a late entry splits is two rows', () => {
    const items = [read(1), read(3), said(2)].map(plainItem) as [Item, Item, Item];
    expect(rows([items[0], items[1]], new Map()).map(({ key }) => key)).toEqual(['work:e1']);
    expect(rows([items[0], items[2], items[1]], new Map()).map(({ key }) => key)).toEqual([
      'work:e1',
      'e2',
      'work:e3',
    ]);
  });
});

test('an item has one row, however often they are made', () => {
  const items = [1, 2].map((seq) => plainItem(entry(seq)));
  const before = rows(items, new Map());
  rows([...items, plainItem(entry(3))], new Map())
    .slice(0, 2)
    .forEach((row, at) => expect(row).toBe(before[at]));
});

describe('footers', () => {
  test('stand after the last entry of a turn that is done', () => {
    const turns = [turn(), turn({ id: 't2', state: 'running' })];
    const entries = [entry(1, { turn: 't1' }), entry(2, { turn: 't1' }), entry(3, { turn: 't2' })];
    expect(list(entries, turns)).toEqual(['e1', 'e2', 'footer:t1', 'e3']);
  });

  test('stand once, after entries of no turn in between', () => {
    const entries = [entry(1, { turn: 't1' }), entry(2), entry(3, { turn: 't1' })];
    expect(list(entries)).toEqual(['e1', 'e2', 'e3', 'footer:t1']);
  });

  test('know all entries of their turn', () => {
    const items = [entry(1, { turn: 't1' }), entry(2), entry(3, { turn: 't1' })].map(plainItem);
    const footer = rows(items, new Map([['t1', turn()]])).at(-1);
    expect(footer?.kind === 'footer' && footer.items.map((item) => item.id)).toEqual(['e1', 'e3']);
  });
});

describe('a program', () => {
  const program = (seq: number, id: string) =>
    entry(seq, {
      kind: 'terminal',
      turn: 't1',
      terminal: { terminalId: id, running: false, startedAt: '2026-01-01T00:00:00.000Z' },
    });

  const shows = entry(2, {
    kind: 'tool',
    turn: 't1',
    tool: tool({ kind: 'execute', content: [{ type: 'terminal', terminalId: 'a' }, null, 7] }),
  });
  const items = [program(1, 'a'), shows, program(3, 'b')].map(plainItem);

  test('stands for itself, unless a tool call shows it', () => {
    expect(rows(items, new Map()).flatMap((row) => (row.kind === 'work' ? row.shown : []))).toEqual(
      items.slice(1),
    );
  });

  test('is found in the tool call that shows it', () => {
    expect(items.map((item) => hostOf(item, items).id)).toEqual(['e2', 'e2', 'e3']);
    expect(hostOf(items[0] as Item, [items[0] as Item]).id).toBe('e1');
    const programs = new Map([
      ['a', items[0] as Item],
      ['b', items[2] as Item],
    ]);
    expect(rows(items, new Map()).map((row) => seqsOf(row, programs))).toEqual([[1, 2, 3]]);
  });
});
