import { beforeEach, describe, expect, test } from 'vitest';
import { append, entry, event, turn, upsert } from '../test/records';
import {
  applyEvents,
  applyPage,
  forget,
  forgetBelow,
  plainItem,
  refresh,
  type Transcript,
} from './transcript';

let held: Transcript;

beforeEach(() => {
  held = { items: [], turns: new Map(), next: undefined, newer: undefined, latest: 0, loaded: true };
});

const apply = (...events: ReturnType<typeof event>[]) => applyEvents(held, events, plainItem);
const ids = () => held.items.map((item) => item.id);
const text = (id: string) => held.items.find((item) => item.id === id)?.text;

describe('appends', () => {
  beforeEach(() => apply(upsert(entry(1, { text: 'Hello' }))));

  test('add text at the end', () => {
    apply(append('e1', ', ', 5), append('e1', 'world', 7));
    expect(text('e1')).toBe('Hello, world');
  });

  test('that were seen already change nothing', () => {
    apply(append('e1', 'Hel', 0), append('e1', 'lo', 3));
    expect(text('e1')).toBe('Hello');
  });

  test('that overlap add only what is new', () => {
    apply(append('e1', 'lo, world', 3));
    expect(text('e1')).toBe('Hello, world');
  });

  test('beyond the end are a gap, and are not guessed', () => {
    expect(apply(append('e1', 'world', 9)).gap).toBe(1);
    expect(text('e1')).toBe('Hello');
  });

  test('count in UTF-16 units', () => {
    apply(upsert(entry(2, { text: 'a🚀' })), append('e2', 'b', 3));
    expect(text('e2')).toBe('a🚀b');
  });

  test('of entries that are not held are nothing to us', () => {
    expect(apply(append('e9', 'x', 4))).toEqual({ added: 0 });
  });

  test('of a clipped text count what is left out', () => {
    apply(upsert(entry(2, { text: 'start', clipped: 100 })), append('e2', 'ü', 80));
    expect(text('e2')).toBe('start');
    expect(held.items[1]?.clipped).toBe(102);
  });
});

describe('upserts', () => {
  test('stand in order of seq, whatever order they came in', () => {
    apply(upsert(entry(3)), upsert(entry(1)), upsert(entry(2)));
    expect(ids()).toEqual(['e1', 'e2', 'e3']);
  });

  test('replace an entry in place and keep the item', () => {
    apply(upsert(entry(1, { text: 'old' })), upsert(entry(2)));
    const [item] = held.items;
    apply(upsert(entry(1, { text: 'new' })));
    expect(held.items[0]).toBe(item);
    expect(item?.text).toBe('new');
  });

  test('twice the same change nothing', () => {
    const one = upsert(entry(1, { text: 'x' }));
    apply(one);
    const before = held.items;
    apply(one);
    expect(held.items).toBe(before);
  });

  test('of unknown kinds are kept', () => {
    apply(upsert({ ...entry(1), kind: 'hologram' as never }));
    expect(held.items[0]?.entry.kind).toBe('hologram');
  });

  test('of what was not loaded yet come with their page', () => {
    held.next = 10;
    apply(upsert(entry(10)), upsert(entry(4)));
    expect(ids()).toEqual(['e10']);
  });

  test('count as new only at the end', () => {
    expect(apply(upsert(entry(5)), upsert(entry(6)), upsert(entry(2))).added).toBe(2);
  });

  test('take many events without touching the list more than once', () => {
    const lists = new Set<readonly unknown[]>();
    let items: Transcript['items'] = [];
    Object.defineProperty(held, 'items', {
      get: () => items,
      set: (value: Transcript['items']) => {
        lists.add(value);
        items = value;
      },
    });
    apply(...Array.from({ length: 10_000 }, (_, n) => upsert(entry(n + 1))));
    expect(items).toHaveLength(10_000);
    expect(lists.size).toBe(1);
  });
});

test('an entry that was removed is gone, and an append to it is nothing', () => {
  apply(upsert(entry(1)), upsert(entry(2)), event('entry.removed', { id: 'e1' }), append('e1', 'x', 0));
  expect(ids()).toEqual(['e2']);
});

test('turns are kept by id, and events of unknown types do nothing', () => {
  apply(
    event('turn.upsert', turn({ state: 'running' })),
    event('turn.upsert', turn()),
    event('evt.other', {}),
  );
  expect(held.turns.get('t1')?.state).toBe('done');
});

describe('pages', () => {
  const page = (from: number, to: number, next?: number) => ({
    items: Array.from({ length: to - from + 1 }, (_, n) => entry(from + n, { text: 'page' })),
    turns: [],
    ...(next === undefined ? {} : { next }),
  });

  test('of the tail replace what is held', () => {
    held.loaded = false;
    applyPage(held, page(5, 6, 5), 'tail', plainItem);
    expect(ids()).toEqual(['e5', 'e6']);
    expect(held.next).toBe(5);
    expect(held.loaded).toBe(true);
  });

  test('of the tail keep what stands before them when they reach back into it', () => {
    applyPage(held, page(1, 4), 'tail', plainItem);
    const [first] = held.items;
    applyPage(held, page(3, 6, 3), 'tail', plainItem);
    expect(ids()).toEqual(['e1', 'e2', 'e3', 'e4', 'e5', 'e6']);
    expect(held.items[0]).toBe(first);
    expect(held.next).toBeUndefined();
  });

  test('of the tail after a hole drop what stands before it', () => {
    applyPage(held, page(1, 4), 'tail', plainItem);
    applyPage(held, page(8, 9, 8), 'tail', plainItem);
    expect(ids()).toEqual(['e8', 'e9']);
    expect(held.next).toBe(8);
  });

  test('that are older stand before, and change nothing that is held', () => {
    applyPage(held, page(5, 6, 5), 'tail', plainItem);
    apply(append('e5', '!', 4));
    applyPage(held, { ...page(3, 5, 3), turns: [turn({ state: 'running' })] }, 'older', plainItem);
    expect(ids()).toEqual(['e3', 'e4', 'e5', 'e6']);
    expect(text('e5')).toBe('page!');
    expect(held.next).toBe(3);
  });

  test('of long texts fewer are kept, but never few', () => {
    const items = Array.from({ length: 300 }, (_, n) => entry(n + 1, { text: 'x'.repeat(1_000) }));
    applyPage(held, { items, turns: [] }, 'tail', plainItem);
    forget(held, 1_000, 100_000);
    expect(held.items).toHaveLength(100);
    expect(held.next).toBe(201);
    forget(held, 1_000, 10);
    expect(held.items).toHaveLength(20);
  });

  test('are not forgotten one by one', () => {
    applyPage(held, page(1, 110), 'tail', plainItem);
    forget(held, 100);
    expect(held.items).toHaveLength(110);
    apply(upsert(entry(111)), upsert(entry(112)));
    forget(held, 100);
    expect(held.items).toHaveLength(100);
  });

  test('of what stands below the one that is read little is kept, however it came to be much', () => {
    const texts = (count: number, characters: number) =>
      Array.from({ length: count }, (_, n) => entry(n + 1, { text: 'x'.repeat(characters) }));
    const read = (items: ReturnType<typeof entry>[], seq: number) => {
      held.newer = undefined;
      held.items = items.map(plainItem);
      forgetBelow(held, seq, 4, 20, 100);
      return [held.items.length, held.newer];
    };
    expect(read(texts(20, 1), 5)).toEqual([20, undefined]);
    expect(read(texts(21, 1), 5)).toEqual([9, 9]);
    expect(read(texts(21, 1), 21)).toEqual([21, undefined]); // all items are mounted
    expect(read(texts(10, 50), 5)).toEqual([9, 9]);
    expect(read(texts(9, 50), 5)).toEqual([9, undefined]); // no more than a page
    expect(read(texts(8, 50), 6)).toEqual([8, undefined]); // the long items are above
    expect(read(texts(21, 1), 0)).toEqual([21, undefined]); // no item is mounted
  });

  test('what is forgotten can be asked for again', () => {
    applyPage(held, page(1, 9), 'tail', plainItem);
    forget(held, 4);
    expect(ids()).toEqual(['e6', 'e7', 'e8', 'e9']);
    expect(held.next).toBe(6);
  });

  test('around a place replace what is held, and what is newer waits for its page', () => {
    applyPage(held, page(90, 95, 90), 'tail', plainItem);
    applyPage(held, { ...page(10, 14, 10), newer: 14 }, 'around', plainItem);
    expect(ids()).toEqual(['e10', 'e11', 'e12', 'e13', 'e14']);
    expect([held.next, held.newer]).toEqual([10, 14]);
    expect(apply(upsert(entry(96)), upsert(entry(95)), append('e95', 'x', 0))).toEqual({
      added: 1, // the other item was known before
    });
    expect(ids()).toHaveLength(5);
    apply(upsert(entry(12, { text: 'changed' })));
    expect(text('e12')).toBe('changed');
  });

  test('that are newer stand behind, until they meet the tail and events go on', () => {
    applyPage(held, { ...page(10, 11, 10), newer: 11 }, 'around', plainItem);
    applyPage(held, { ...page(12, 13), newer: 13 }, 'newer', plainItem);
    expect(held.newer).toBe(13);
    applyPage(held, page(14, 15), 'newer', plainItem);
    expect(held.newer).toBeUndefined();
    expect(held.next).toBe(10);
    expect(apply(upsert(entry(16))).added).toBe(1);
    expect(ids()).toEqual(['e10', 'e11', 'e12', 'e13', 'e14', 'e15', 'e16']);
  });

  test('of the tail end being elsewhere', () => {
    applyPage(held, { ...page(10, 11, 10), newer: 11 }, 'around', plainItem);
    applyPage(held, page(90, 95, 90), 'tail', plainItem);
    expect(held.newer).toBeUndefined();
    expect([ids()[0], held.next]).toEqual(['e90', 90]);
  });

  test('that refresh change what is held, and bring nothing from beyond it', () => {
    applyPage(held, { ...page(10, 12, 10), newer: 12 }, 'around', plainItem);
    const items = page(9, 14).items.map((one) => ({ ...one, text: 'new' }));
    refresh(held, { items, turns: [turn()] }, plainItem);
    expect(ids()).toEqual(['e10', 'e11', 'e12']);
    expect(text('e12')).toBe('new');
    expect(held.turns.has('t1')).toBe(true);
    expect(held.newer).toBe(12);
  });
});
