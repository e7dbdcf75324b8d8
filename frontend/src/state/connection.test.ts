import { describe, expect, test, vi } from 'vitest';
import { fakePage } from '../test/page';
import { session } from '../test/records';

const page = fakePage();

test('what the status shows is asked for once the conversations are there', () => {
  const paths = page.calls.map((call) => call.path);
  const last = Math.max(
    ...['/client/hello', '/client/inbox', '/client/settings'].map((path) => paths.indexOf(path)),
  );
  expect(paths.slice(0, last)).not.toContain('/client/storage');
  expect(paths.slice(last)).toEqual(expect.arrayContaining(['/client/storage', '/client/processes']));
});

test('snapshots are loaded before anything is followed', () => {
  expect(page.connection.loaded).toBe(true);
  expect(page.connection.link).toBe('live');
  expect(page.conversations.ordered.map((one) => one.id)).toEqual(['s1']);
});

test('events change sessions, and the transcript that is open', async () => {
  page.navigation.show({ name: 'session', id: 's1' });
  await vi.advanceTimersByTimeAsync(0);
  await page.tell('entry.append', { id: 'e1', field: 'text', text: ' there', offset: 2 }, 2);
  expect(page.navigation.panes.current?.view?.items[0]?.text).toBe('Hi there');
  await page.tell('session.upsert', session({ phase: 'working', title: 'New' }), 3);
  expect(page.navigation.current?.phase).toBe('working');
  expect(page.navigation.current?.title).toBe('New');
});

test('a conversation that is gone does not keep the others from loading', async () => {
  page.navigation.show({ name: 'session', id: 's1' });
  await vi.advanceTimersByTimeAsync(0);
  page.refuse = (path) => path.includes('/entries') && { code: 'not_found', status: 404 };
  await page.feed({ gen: 'g2', seq: 1, reset: true, events: [] });
  expect(page.connection.link).toBe('live');
  expect(page.navigation.panes.current?.view?.error?.code).toBe('not_found');
});

describe('a conversation that is shown, and in no list after a gap,', () => {
  const gap = async (seq = 90) => {
    page.stored.sessions = [];
    await page.feed({ gen: 'g', seq, reset: true, events: [] });
  };

  test('is as it is now', async () => {
    await page.navigation.open('s9');
    await page.tell('session.upsert', session({ id: 's9', title: 'Before', phase: 'working' }), 2);
    await gap();
    expect(page.connection.link).toBe('live');
    expect(page.navigation.current).toMatchObject({ title: 'Far away', phase: 'ready' });
  });

  test('is gone when it was deleted, and stays when nobody can tell', async () => {
    page.navigation.show({ name: 'session', id: 's1' });
    page.refuse = (path) => path.endsWith('/s1') && { code: 'storage.newer_unreadable', status: 409 };
    await gap();
    expect(page.navigation.view.name).toBe('session');
    page.refuse = (path) => path.includes('/s1') && { code: 'not_found', status: 404 };
    await gap(91);
    expect([page.connection.link, page.conversations.sessions.size, page.navigation.view.name]).toEqual([
      'live',
      0,
      'new',
    ]);
  });
});
