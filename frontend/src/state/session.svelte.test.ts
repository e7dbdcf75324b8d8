import { describe, expect, test, vi } from 'vitest';
import type { Client } from '../api/client';
import type { EntryPage } from '../api/records';
import { append, entry, tool, turn, upsert } from '../test/records';
import { SessionView } from './session.svelte';

function deferred<T>() {
  let resolve!: (value: T) => void;
  const promise = new Promise<T>((done) => (resolve = done));
  return { promise, resolve };
}

function viewWith(...pages: Promise<EntryPage>[]) {
  const entries = vi.fn(() => pages.shift() ?? Promise.reject(new Error('no page')));
  return { view: new SessionView('s1', { entries } as unknown as Client, () => undefined), entries };
}

const page = (part: Partial<EntryPage>): EntryPage => ({ items: [], turns: [], requests: [], ...part });

describe('loading', () => {
  test('events that come meanwhile are applied after the page, so that none is undone', async () => {
    const first = deferred<EntryPage>();
    const { view } = viewWith(first.promise);
    const loaded = view.load();
    // The page is older than these events, and arrives after them.
    view.apply([append('e1', ' more', 4), upsert(entry(2, { text: 'new' }))]);
    first.resolve(page({ items: [entry(1, { text: 'some' })] }));
    await loaded;
    expect(view.items.map((item) => item.text)).toEqual(['some more', 'new']);
  });

  test('what a person waits for is a small page; what heals a gap reaches as far back as it can', async () => {
    const { view, entries } = viewWith(
      Promise.resolve(page({ items: [entry(1)] })),
      Promise.resolve(page({ items: [entry(1)] })),
    );
    await view.load();
    await view.load();
    expect(entries.mock.calls.map((call: unknown[]) => call[2])).toEqual([60, 200]);
  });

  test('an entry of whose text something was missed is fetched again, however far from the end it is', async () => {
    const items = [entry(1, { text: 'a' }), ...Array.from({ length: 300 }, (_, n) => entry(n + 2))];
    const entriesAround = vi.fn(() =>
      Promise.resolve(page({ items: [entry(1, { text: 'abcdef' }), ...items.slice(1, 60)] })),
    );
    const entries = () => Promise.resolve(page({ items }));
    const view = new SessionView('s1', { entries, entriesAround } as unknown as Client, () => undefined);
    await view.load();
    view.apply([append('e1', 'f', 5)]);
    await vi.waitFor(() => expect(view.items[0]?.text).toBe('abcdef'));
    view.apply([append('e1', 'gh', 6)]);
    expect(view.items[0]?.text).toBe('abcdefgh');
    expect(view.items).toHaveLength(301);
    expect(entriesAround.mock.calls).toEqual([['s1', 1, 60]]);
  });

  test('what is said while an older page is on its way is not missing in it', async () => {
    const older = deferred<EntryPage>();
    const { view } = viewWith(
      Promise.resolve(page({ items: [entry(5, { text: 'five' })], next: 5 })),
      older.promise,
    );
    await view.load();
    const loaded = view.loadOlder();
    view.apply([append('e1', ' more', 4), append('e5', '!', 4)]); // the page is older than these events
    older.resolve(page({ items: [entry(1, { text: 'some' })] }));
    await loaded;
    expect(view.items.map((item) => item.text)).toEqual(['some more', 'five!']);
  });

  test('a failure is kept to be shown, and the next try clears it', async () => {
    const { view } = viewWith(
      Promise.reject(new Error('boom')),
      Promise.resolve(page({ items: [entry(1)] })),
    );
    await expect(view.load()).rejects.toThrow();
    expect(view.error?.code).toBe('internal');
    await view.load();
    expect(view.error).toBeUndefined();
    expect(view.loaded).toBe(true);
  });
});

test('an older page that came at the second try leaves no error, so that the next one is fetched by itself', async () => {
  const { view } = viewWith(
    Promise.resolve(page({ items: [entry(9)], next: 9 })),
    Promise.reject(new Error('boom')),
    Promise.resolve(page({ items: [entry(8)], next: 8 })),
  );
  await view.load();
  await view.loadOlder();
  expect(view.error?.code).toBe('internal');
  await view.loadOlder();
  expect(view.items.map((item) => item.seq)).toEqual([8, 9]);
  expect(view.error).toBeUndefined();
});

test('an older page that waited for one which could not be had leaves no error either', async () => {
  const failing = deferred<EntryPage>();
  const { view } = viewWith(
    Promise.resolve(page({ items: [entry(9)], next: 9 })),
    failing.promise.then(() => Promise.reject(new Error('boom'))),
    Promise.resolve(page({ items: [entry(8)], next: 8 })),
  );
  await view.load();
  const again = view.load().catch(() => undefined);
  const paged = view.loadOlder();
  failing.resolve(page({}));
  await Promise.all([again, paged]);
  expect(view.items.map((item) => item.seq)).toEqual([8, 9]);
  expect(view.error).toBeUndefined();
});

test('while the tail is followed the oldest are forgotten, while somebody reads nothing is', async () => {
  const { view } = viewWith(Promise.resolve(page({})));
  await view.load();
  view.reading = 1;
  view.apply(Array.from({ length: 1_500 }, (_, n) => upsert(entry(n + 1))));
  expect(view.items).toHaveLength(1_500);
  view.reading = undefined;
  view.apply([upsert(entry(1_501))]);
  expect(view.items).toHaveLength(1_000);
  expect(view.next).toBe(view.items[0]?.seq);
});

test('who has scrolled up and goes away holds a bounded part of it, however long the agent works', async () => {
  const entries = vi
    .fn()
    .mockResolvedValueOnce(page({ items: Array.from({ length: 60 }, (_, n) => entry(n + 1)) }))
    .mockResolvedValueOnce(page({ items: [entry(9_060)], next: 9_060 }));
  const view = new SessionView('s1', { entries } as unknown as Client, () => undefined);
  await view.load();
  const since = view.arrived;
  view.reading = 60;
  for (let n = 61; n <= 9_060; n++) {
    view.apply([upsert(entry(n))]);
    expect(view.items.length).toBeLessThanOrEqual(2_000);
  }
  expect(view.items.map((item) => item.seq)).toEqual(Array.from({ length: 260 }, (_, n) => n + 1));
  expect(view.newer).toBe(260);
  expect(view.arrived - since).toBe(9_000);
  await view.toTail();
  expect(view.items.at(-1)?.seq).toBe(9_060);
  expect(view.newer).toBeUndefined();
});

test('who reads upwards through a long conversation holds a bounded part of it, and finds the rest again', async () => {
  const size = 200;
  const last = 4_000;
  const from = (first: number) => Array.from({ length: size }, (_, n) => entry(first + n));
  const older = Array.from({ length: 10 }, (_, n) => last - (n + 2) * size + 1);
  const { view } = viewWith(
    Promise.resolve(page({ items: from(last - size + 1), next: last - size + 1 })),
    ...older.map((first) => Promise.resolve(page({ items: from(first), next: first }))),
  );
  await view.load();
  view.reading = 1;
  for (const first of older) {
    await view.loadOlder();
    expect(view.items[0]?.seq).toBe(first);
    expect(view.items.length).toBeLessThanOrEqual(1_000);
  }
  expect(view.newer).toBe(view.items.at(-1)?.seq);
  view.apply([upsert(entry(last + 1))]);
  expect(view.items.at(-1)?.seq).toBeLessThan(last);
  expect(view.arrived).toBe(1);
});

describe('long texts at the end of a conversation', () => {
  const long = (first: number, last: number) =>
    Array.from({ length: last - first + 1 }, (_, n) => entry(first + n, { text: 'x'.repeat(3_000) }));

  function reader(tail: EntryPage, after: EntryPage) {
    const around = page({ items: long(1, 60), newer: 60 });
    const view = new SessionView(
      's1',
      {
        entries: () => Promise.resolve(tail),
        entriesAround: () => Promise.resolve(around),
        entriesAfter: () => Promise.resolve(after),
      } as unknown as Client,
      () => undefined,
    );
    return view;
  }

  test('are there once their page has come, and are not fetched again for ever', async () => {
    const view = reader(page({}), page({ items: long(61, 260) }));
    await view.around(30);
    view.reading = 60;
    await view.loadNewer();
    expect(view.newer).toBeUndefined();
    expect(view.items.at(-1)?.seq).toBe(260);
  });

  test('are there for who goes to the end, also where that joins what is held', async () => {
    const view = reader(
      page({ items: long(255, 314), next: 255 }),
      page({ items: long(61, 260), newer: 260 }),
    );
    await view.around(30);
    view.reading = 60;
    await view.loadNewer();
    await view.toTail();
    expect(view.newer).toBeUndefined();
    expect(view.items.at(-1)?.seq).toBe(314);
  });
});

test('a tool call is found by its id, the newest of them', async () => {
  const { view } = viewWith(Promise.resolve(page({})));
  await view.load();
  const call = { toolCallId: 'c1', title: '', kind: 'edit', status: 'pending' as const, startedAt: '' };
  view.apply([
    upsert(entry(1, { kind: 'tool', tool: call })),
    upsert(entry(2, { kind: 'tool', tool: call })),
  ]);
  expect(view.find('c1')?.id).toBe('e2');
  expect(view.find('c2')).toBeUndefined();
});

describe('after a gap in the events', () => {
  const call = (status: 'in_progress' | 'completed') => ({
    kind: 'tool' as const,
    turn: 't1',
    tool: tool({ status }),
  });

  test('what was said before the newest page is fetched anew when it is asked for, its turn too', async () => {
    const running = turn({ state: 'running' });
    const { view } = viewWith(
      Promise.resolve(page({ items: [entry(1, call('in_progress')), entry(2)], turns: [running] })),
      Promise.resolve(page({ items: [entry(2), entry(3)], next: 2 })),
      Promise.resolve(page({ items: [entry(1, call('completed'))], turns: [turn()] })),
    );
    await view.load();
    const second = view.items[1];
    await view.load();
    expect(view.items.map(({ seq }) => seq)).toEqual([2, 3]);
    expect(view.items[0]).toBe(second);
    await view.loadOlder();
    expect(view.items[0]?.entry.tool?.status).toBe('completed');
    expect(view.turns.get('t1')?.state).toBe('done');
  });

  test('all that is held where somebody reads is as it is now, and nothing else has left', async () => {
    const then = Array.from({ length: 1_300 }, (_, n) => entry(n + 10, call('in_progress')));
    const now = [...then, entry(1_310), entry(1_311)]
      .filter(({ seq }) => seq !== 12)
      .map((one) => (one.seq === 11 ? { ...one, ...call('completed') } : one));
    const entriesAfter = vi.fn((_id: string, after: number, limit: number) => {
      const items = now.filter(({ seq }) => seq > after).slice(0, limit);
      const newer = items.at(-1)?.seq ?? 0;
      return Promise.resolve(page({ items, ...(newer < 1_311 ? { newer } : {}) }));
    });
    const entries = vi.fn(() => Promise.resolve(page({ items: then, next: 10 })));
    const view = new SessionView('s1', { entries, entriesAfter } as unknown as Client, () => undefined);
    view.reading = 0; // nothing is mounted yet, so nothing may be dropped
    await view.load();
    const [first, second] = view.items;
    await view.load();
    expect(view.items.map(({ seq }) => seq)).toEqual(now.map(({ seq }) => seq));
    expect(view.items[0]).toBe(first);
    expect(view.items[1]).toBe(second);
    expect(second?.entry.tool?.status).toBe('completed');
    expect([view.next, view.newer]).toEqual([10, undefined]);
    expect(entriesAfter).toHaveBeenCalledTimes(2);
    expect(entries).toHaveBeenCalledTimes(1);
  });

  test('a page that is under way is not taken for that of after it, and of what waits for it one comes after the other', async () => {
    const [before, after] = [deferred<EntryPage>(), deferred<EntryPage>()];
    const { view, entries } = viewWith(
      before.promise,
      after.promise,
      Promise.resolve(page({ items: [entry(1), entry(2)] })),
    );
    const loaded = [view.load(), view.load(), view.load()];
    before.resolve(page({ items: [entry(1)] }));
    await vi.waitFor(() => expect(view.items).toHaveLength(1));
    await new Promise((soon) => setTimeout(soon));
    expect(entries).toHaveBeenCalledTimes(2);
    after.resolve(page({ items: [entry(1)] }));
    await Promise.all(loaded);
    expect(view.items.map(({ seq }) => seq)).toEqual([1, 2]);
  });

  test('neither events of before it are applied, nor an older page that is under way', async () => {
    const older = deferred<EntryPage>();
    const { view } = viewWith(
      Promise.resolve(page({ items: [entry(5, { text: 'before' })], next: 5 })),
      older.promise,
      Promise.resolve(page({ items: [entry(5, { text: 'now' })], next: 5 })),
    );
    await view.load();
    const paged = view.loadOlder();
    view.apply([upsert(entry(5, { text: 'then' }))]);
    await view.load();
    older.resolve(page({ items: [entry(4, { text: 'old' })] }));
    await paged;
    expect(view.items.map(({ text }) => text)).toEqual(['now']);
    expect(view.next).toBe(5);
  });

  test('an older page waits for what is being fetched anew', async () => {
    const anew = deferred<EntryPage>();
    const { view, entries } = viewWith(
      Promise.resolve(page({ items: [entry(5)], next: 5 })),
      anew.promise,
      Promise.resolve(page({ items: [entry(6)], next: 6 })),
    );
    await view.load();
    const loaded = view.load();
    const paged = view.loadOlder();
    anew.resolve(page({ items: [entry(7), entry(8)], next: 7 }));
    await Promise.all([loaded, paged]);
    expect(view.items.map(({ seq }) => seq)).toEqual([6, 7, 8]);
    expect(entries.mock.calls.map((args: unknown[]) => args[1])).toEqual([undefined, undefined, 7]);
  });
});

describe('a place far from the tail', () => {
  const from = (first: number, last: number, part: Partial<EntryPage> = {}) =>
    page({ items: Array.from({ length: last - first + 1 }, (_, n) => entry(first + n)), ...part });
  let calls: string[];

  function far(answers: Record<string, EntryPage | Promise<EntryPage>>) {
    calls = [];
    const answer = (how: string, seq: number | undefined) => {
      const call = `${how} ${seq ?? ''}`.trim();
      calls.push(call);
      const found = answers[call];
      return found ? Promise.resolve(found) : Promise.reject(new Error(`not expected: ${call}`));
    };
    return new SessionView(
      's1',
      {
        entries: (_id: string, before?: number) => answer(before === undefined ? 'tail' : 'before', before),
        entriesAround: (_id: string, seq: number) => answer('around', seq),
        entriesAfter: (_id: string, seq: number) => answer('after', seq),
      } as unknown as Client,
      () => undefined,
    );
  }
  const seqs = (view: SessionView) => view.items.map((item) => item.seq);

  test('is fetched with what stands around it, and paged to the tail; what comes meanwhile is not lost', async () => {
    const last = deferred<EntryPage>();
    const view = far({ 'around 12': from(11, 13, { next: 11, newer: 13 }), 'after 13': last.promise });
    await view.around(12);
    expect(seqs(view)).toEqual([11, 12, 13]);
    view.apply([upsert(entry(15))]);
    expect(seqs(view)).toEqual([11, 12, 13]);
    expect(view.arrived).toBe(1);
    const loaded = view.loadNewer();
    await Promise.resolve();
    // The server wrote this entry after it had read the page.
    view.apply([upsert(entry(16))]);
    last.resolve(from(14, 15));
    await loaded;
    expect(seqs(view)).toEqual([11, 12, 13, 14, 15, 16]);
    expect(view.newer).toBeUndefined();
    await view.loadNewer();
    expect(calls).toEqual(['around 12', 'after 13']);
  });

  test('that is held is not fetched again, also when its page is just on its way', async () => {
    const tail = deferred<EntryPage>();
    const view = far({ tail: tail.promise });
    const loaded = view.load();
    const there = view.around(12);
    tail.resolve(from(10, 14));
    await Promise.all([loaded, there]);
    expect(calls).toEqual(['tail']);
  });

  test('is kept when the events have a gap, as it is now', async () => {
    const view = far({
      'around 12': from(11, 13, { next: 11, newer: 13 }),
      'after 10': page({ items: [entry(11), entry(13, { text: 'changed' }), entry(14)], newer: 14 }),
    });
    await view.around(12);
    await view.load();
    expect(seqs(view)).toEqual([11, 13, 14]);
    expect(view.items[1]?.text).toBe('changed');
    expect([view.next, view.newer]).toEqual([11, 14]);
  });

  test('is left for the tail', async () => {
    const view = far({ 'around 12': from(11, 13, { newer: 13 }), tail: from(90, 92, { next: 90 }) });
    await view.around(12);
    await view.toTail();
    expect(seqs(view)).toEqual([90, 91, 92]);
    await view.toTail();
    expect(calls).toEqual(['around 12', 'tail']);
  });

  test('puts no older page before entries that it does not belong to', async () => {
    const older = deferred<EntryPage>();
    const view = far({
      tail: from(90, 92, { next: 90 }),
      'before 90': older.promise,
      'around 12': from(11, 13, { next: 11, newer: 13 }),
    });
    await view.load();
    const paged = view.loadOlder();
    await view.around(12);
    older.resolve(from(80, 89, { next: 80 }));
    await paged;
    expect(seqs(view)).toEqual([11, 12, 13]);
    expect(view.next).toBe(11);
  });

  test('that could not be fetched leaves what was there, and the page after it can be asked for again', async () => {
    const view = far({ 'around 12': from(11, 13, { newer: 13 }) });
    await view.around(12);
    await expect(view.around(400)).rejects.toThrow();
    await view.loadNewer();
    expect(view.error?.code).toBe('internal');
    expect(seqs(view)).toEqual([11, 12, 13]);
    expect([view.newer, view.loading, view.loadingNewer]).toEqual([13, false, false]);
  });
});
