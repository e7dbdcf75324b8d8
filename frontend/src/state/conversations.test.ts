import { expect, test, vi } from 'vitest';
import type { Session } from '../api/records';
import { fakePage } from '../test/page';
import { session } from '../test/records';

const page = fakePage();

test('the end of a turn is announced', async () => {
  const running = { id: 't1', session: 's1', state: 'running' as const, startedAt: '' };
  await page.tell('session.upsert', session({ turn: running }), 2);
  await page.tell('session.upsert', session(), 3);
  expect(page.toasts.announcement).toBe('Demo agent finished: Fix login');
});

test('a change of what is queued tells whether it was taken', async () => {
  expect(await page.conversations.changeQueued('s1', 'q0', { message: 'better' })).toBe(true);
  page.refuse = () => ({ code: 'queue.gone', status: 409 });
  expect(await page.conversations.changeQueued('s1', 'q0', { message: 'better' })).toBe(false);
  expect(page.toasts.list.at(-1)?.text).toContain('no longer in the queue');
});

test('what was deleted from the queue can be taken back', async () => {
  await page.conversations.removeQueued('s1', 'q0');
  expect(page.calls.at(-1)).toMatchObject({ method: 'DELETE', path: '/client/sessions/s1/queue/q0' });
  page.toasts.list.at(-1)?.undo?.();
  await vi.advanceTimersByTimeAsync(0);
  expect(page.calls.at(-1)).toMatchObject({ method: 'POST', path: '/client/sessions/s1/queue/q0/restore' });
});

test('what is put away is held while it is shown, works, or is listed', async () => {
  const held = () => [...page.conversations.sessions.keys()];
  const away = (part: Partial<Session>) => ({
    ...session({ archivedAt: '2026-11-21T15:00:00.000Z' }),
    ...part,
  });
  page.navigation.show({ name: 'session', id: 's1' });
  await page.tell('session.upsert', away({}), 2);
  expect(held()).toEqual(['s1']);
  await page.lifecycle.archive(session());
  expect(held()).toEqual([]);
  expect(page.conversations.sessions.count).toBe(1);
  await page.tell('session.upsert', away({ waiting: 1 }), 3);
  expect(held()).toEqual(['s1']);
  await page.tell('session.upsert', away({}), 4);
  expect(held()).toEqual([]);
  page.stored.sessions = [away({})];
  await page.conversations.setShowArchived(true);
  await page.tell('session.upsert', away({}), 5);
  expect(held()).toEqual(['s1']);
  await page.conversations.setShowArchived(false);
  expect(held()).toEqual([]);
  await page.tell('session.upsert', session(), 6); // it is back
  expect(held()).toEqual(['s1']);
  expect(page.conversations.sessions.count).toBe(1);
  await page.tell('session.upsert', away({}), 7);
  await page.tell('session.removed', { id: 's1' }, 8);
  expect(page.conversations.sessions.count).toBe(0);
});
