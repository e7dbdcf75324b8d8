import { expect, test, vi } from 'vitest';
import type { QueueItem } from '../api/records';
import { event, queued } from '../test/records';
import { QueueView } from './queue.svelte';
import { applyQueue, heard, neighbour, whenOf } from './queue';

const ids = (items: readonly QueueItem[]) => items.map((item) => item.id);

test('events add, change, move and remove, and the order is that of the positions', () => {
  const items = applyQueue(
    [queued(0), queued(1)],
    [
      event('queue.upsert', queued(2)),
      event('queue.upsert', queued(1, { position: 0, held: 'stopped' })),
      event('queue.upsert', queued(0, { position: 1 })),
      event('queue.removed', { id: 'q2' }),
      event('session.upsert', {}),
    ],
  );
  expect(ids(items)).toEqual(['q1', 'q0']);
  expect(items[0]?.held).toBe('stopped');
});

test('the focus goes to the row that takes the place of one that is gone', () => {
  const items = [queued(0), queued(1), queued(2)];
  expect(neighbour(items, 'q0')).toBe('q1');
  expect(neighbour(items, 'q2')).toBe('q1');
  expect(neighbour([queued(0)], 'q0')).toBeUndefined();
});

test('with Mod a message interrupts', () => {
  expect(whenOf(false, false)).toBe('queue');
  expect(whenOf(true, false)).toBe('interrupt');
});

test('where the agent can be steered, Mod does that', () => {
  expect(whenOf(false, true)).toBe('queue');
  expect(whenOf(true, true)).toBe('steer');
  expect([heard('steer', true), heard('steer', false)]).toEqual(['announce.steering', undefined]);
});

test('what comes while the list is under way is not undone by it', async () => {
  let arrive!: (items: QueueItem[]) => void;
  const view = new QueueView('s1', { queue: () => new Promise((done) => (arrive = done)) });
  const loaded = view.load();
  view.apply([event('queue.upsert', queued(1)), event('queue.removed', { id: 'q0' })]);
  expect(ids(view.items)).toEqual(['q1']);
  arrive([queued(0)]);
  await loaded;
  expect(ids(view.items)).toEqual(['q1']);
});

test('of two lists that are under way the newer counts', async () => {
  const answers: ((items: QueueItem[]) => void)[] = [];
  const queue = vi.fn(() => new Promise<QueueItem[]>((done) => answers.push(done)));
  const view = new QueueView('s1', { queue });
  const loads = [view.load(), view.load()];
  answers[1]?.([queued(1)]);
  answers[0]?.([queued(0)]);
  await Promise.all(loads);
  expect(ids(view.items)).toEqual(['q1']);
});
