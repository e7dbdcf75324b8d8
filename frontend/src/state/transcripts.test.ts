import { expect, test, vi } from 'vitest';
import { fakePage } from '../test/page';
import { queued } from '../test/records';

const page = fakePage();

test('what is queued follows the events, and is loaded again after a gap', async () => {
  const waits = () => page.transcripts.queue('s1').items.map((item) => item.id);
  page.stored.queue = [queued(0)];
  waits();
  await vi.advanceTimersByTimeAsync(0);
  expect(waits()).toEqual(['q0']);
  await page.tell('queue.upsert', queued(1), 2);
  expect(waits()).toEqual(['q0', 'q1']);
  await page.tell('queue.removed', { id: 'q0' }, 3);
  expect(waits()).toEqual(['q1']);
  page.stored.queue = [queued(2)];
  await page.feed({ gen: 'g2', seq: 1, reset: true, events: [] });
  expect(waits()).toEqual(['q2']);
});

test('what is queued and could not be read is read again until it is, and then follows the events', async () => {
  const waits = () => page.transcripts.queue('s1').items.map((item) => item.id);
  page.stored.queue = [queued(0), queued(1)];
  page.refuse = (path) => path.endsWith('/queue') && { code: 'storage.failed', status: 503 };
  waits();
  await vi.advanceTimersByTimeAsync(3_000);
  expect(page.toasts.list).toHaveLength(1);
  await page.tell('queue.removed', { id: 'q0' }, 2);
  page.stored.queue = [queued(1)];
  page.refuse = undefined;
  await vi.advanceTimersByTimeAsync(10_000);
  expect(waits()).toEqual(['q1']);
  await page.tell('queue.upsert', queued(2), 3);
  expect(waits()).toEqual(['q1', 'q2']);
  const asked = () => page.calls.filter(({ path }) => path.endsWith('/queue')).length;
  const before = asked();
  await vi.advanceTimersByTimeAsync(60_000);
  expect(asked()).toBe(before);
});
