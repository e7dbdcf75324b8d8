import { describe, expect, test, vi } from 'vitest';
import type { Client } from '../api/client';
import type { EntryPage } from '../api/records';
import { append, entry, upsert } from '../test/records';
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
    // The page was made before these, and arrives after them.
    view.apply([append('e1', ' more', 4), upsert(entry(2, { text: 'new' }))]);
    first.resolve(page({ items: [entry(1, { text: 'some' })] }));
    await loaded;
    expect(view.items.map((item) => item.text)).toEqual(['some more', 'new']);
  });

  test('a gap fetches the tail again', async () => {
    const { view, entries } = viewWith(
      Promise.resolve(page({ items: [entry(1, { text: 'a' })] })),
      Promise.resolve(page({ items: [entry(1, { text: 'abcdef' })] })),
    );
    await view.load();
    view.apply([append('e1', 'f', 5)]);
    await vi.waitFor(() => expect(view.items[0]?.text).toBe('abcdef'));
    expect(entries).toHaveBeenCalledTimes(2);
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

test('while the tail is followed the oldest are forgotten, while somebody reads nothing is', async () => {
  const { view } = viewWith(Promise.resolve(page({})));
  await view.load();
  view.reading = true;
  view.apply(Array.from({ length: 1_500 }, (_, n) => upsert(entry(n + 1))));
  expect(view.items).toHaveLength(1_500);
  view.reading = false;
  view.apply([upsert(entry(1_501))]);
  expect(view.items).toHaveLength(1_000);
  expect(view.next).toBe(view.items[0]?.seq);
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
