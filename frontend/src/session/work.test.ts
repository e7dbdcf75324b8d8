import { describe, expect, test } from 'vitest';
import type { Entry, ToolCall } from '../api/records';
import { entry, tool } from '../test/records';
import { plainItem } from '../state/transcript';
import { beginOf, endOf, folds, grouped, lastFailed, summaryOf } from './work';

let seq = 0;
const item = (part: Partial<Entry>) => plainItem(entry(++seq, part));
const call = (kind: string, part: Partial<ToolCall> = {}) =>
  item({ kind: 'tool', tool: tool({ kind, toolCallId: `c${seq}`, ...part }) });
const at = (...paths: string[]) => ({ locations: paths.map((path) => ({ path })) });
const thought = () => item({ kind: 'thought', text: 'Hm' });
const program = (part = {}) =>
  item({
    kind: 'terminal',
    terminal: { terminalId: `t${seq}`, running: false, startedAt: '2026-01-01T00:00:00Z', ...part },
  });

test('a run reaches from text to text, within a turn', () => {
  const items = [
    item({}),
    call('read'),
    thought(),
    call('edit'),
    item({ kind: 'plan' }),
    call('read'),
    call('read', {}),
  ];
  expect(items.map((_, n) => [beginOf(items, n), endOf(items, n)])).toEqual([
    [0, 1],
    [1, 4],
    [1, 4],
    [1, 4],
    [4, 5],
    [5, 7],
    [5, 7],
  ]);
});

test('a call alone stays a row, with the thoughts and answers about it', () => {
  const asked = item({ kind: 'request', request: 'r1' });
  expect(folds([call('edit')])).toBe(false);
  expect(folds([thought(), call('edit'), asked, thought()])).toBe(false);
  const written = (path: string) => item({ kind: 'file', file: { path, bytes: 1 } });
  expect(folds([call('edit', at('a')), written('a')])).toBe(false);
  expect(folds([call('edit', at('a')), written('b')])).toBe(true);
  expect(folds([call('read'), call('read')])).toBe(true);
  expect(folds([call('read'), program()])).toBe(true);
  expect(folds(Array.from({ length: 7 }, thought))).toBe(true);
});

test('of the failed calls the last few stay visible', () => {
  const failed = Array.from({ length: 9 }, () => call('edit', { status: 'failed' }));
  const ended = program({ exitCode: 2 });
  expect(lastFailed([call('read'), ...failed, call('read')])).toEqual(failed.slice(4));
  expect(lastFailed([call('read'), ended, program({ exitCode: 0 })])).toEqual([ended]);
});

describe('the words of a run', () => {
  const said = (...items: ReturnType<typeof item>[]) => summaryOf(items).words;

  test('count what was done by its kind', () => {
    expect(
      said(
        call('read', at('a', 'b')),
        call('read', at('c')),
        thought(),
        call('search'),
        call('search'),
        call('edit', at('a')),
        call('execute'),
        program(),
      ),
    ).toBe('Read 3 files, searched 2, edited 1, ran 2 commands');
  });

  test('name the files where nothing before them did', () => {
    expect(said(call('search'), call('edit', at('a')))).toBe('Searched 1 time, edited 1 file');
    expect(said(call('edit', at('a')), call('delete', at('b')), call('move', at('c')))).toBe(
      'Edited 1 file, deleted 1, moved 1',
    );
    expect(said(call('fetch'), call('other'), call('think'))).toBe('Fetched 1 page, used 2 tools');
  });

  test('count a file once, however often it was touched', () => {
    const diff = { type: 'diff', path: 'a', oldText: '', newText: 'b' };
    const written = item({ kind: 'file', file: { path: 'a', bytes: 1 } });
    expect(said(call('edit', at('a')), call('edit', { content: [diff] }), written)).toBe('Edited 1 file');
    expect(said(call('read'), call('read'))).toBe('Read 2 files');
  });

  test('of a run without calls say how long it is', () => {
    expect(said(thought(), thought())).toBe('2 steps');
  });
});

test('a run of one kind has its picture', () => {
  expect(summaryOf([call('read'), thought(), call('read')]).kind).toBe('read');
  expect(summaryOf([call('read'), call('edit')]).kind).toBe('any');
});

test('a run tells how many calls failed', () => {
  expect(summaryOf([call('read', { status: 'failed' }), call('read'), program({ exitCode: 1 })]).failed).toBe(
    2,
  );
});

test('a run took as long as its calls were at work: at the same time counts once, and pauses do not', () => {
  const from = (start: number, end: number) =>
    call('read', {
      startedAt: new Date(start * 1000).toISOString(),
      endedAt: new Date(end * 1000).toISOString(),
    });
  expect(summaryOf([from(10, 14), from(0, 2), from(12, 15), from(13, 14)]).took).toBe(7_000);
  expect(summaryOf([call('read')]).took).toBe(0);
});

test('calls that name each other, or themselves, are all in the run once', () => {
  const of = (n: number, parent: string) =>
    plainItem(entry(n, { kind: 'tool', tool: tool({ toolCallId: `c${n}`, parent }) }));
  const { roots, inner } = grouped([of(1, 'c2'), of(2, 'c1'), of(3, 'c3'), of(4, 'none'), of(5, 'c2')]);
  expect(roots.map(({ id }) => id)).toEqual(['e1', 'e3', 'e4']);
  expect([...inner].map(([id, items]) => [id, items.map((one) => one.id)])).toEqual([['e1', ['e2', 'e5']]]);
});
