import { describe, expect, test, vi } from 'vitest';
import { fakePage } from '../test/page';
import { session } from '../test/records';

const page = fakePage();

test('the conversation that was open last is opened again, unless it was put away', async () => {
  page.navigation.show({ name: 'session', id: 's1' });
  await page.feed({ gen: 'g2', seq: 1, reset: true, events: [] });
  expect(page.navigation.view).toEqual({ name: 'session', id: 's1' });
  expect(localStorage.getItem('deskhand.last')).toBe('s1');
});

test('a conversation that was open in two pages that did not live is left to the person', async () => {
  page.navigation.show({ name: 'session', id: 's1' });
  for (const opened of [true, true, false]) {
    page.connection.close();
    await page.begin();
    expect(page.navigation.view.name).toBe(opened ? 'session' : 'new');
  }
  expect(page.toasts.list.map(({ text }) => text)).toEqual([
    '“Fix login” was not reopened: the window ended twice with it. It is in the list.',
  ]);
  page.connection.close();
  await page.begin();
  expect(page.navigation.view.name).toBe('new');
  page.navigation.show({ name: 'session', id: 's1' });
  page.connection.close();
  await page.begin();
  expect(page.navigation.view.name).toBe('session');
});

test('where one pane has room the others are not seen, until they are shown', async () => {
  page.stored.sessions = [session(), session({ id: 's2' })];
  await page.feed({ gen: 'g', seq: 1, reset: true, events: [] });
  page.navigation.show({ name: 'session', id: 's1' });
  page.navigation.panes.split('s2');
  const read = (id: string) =>
    page.calls.filter((call) => call.method === 'PATCH' && call.path.endsWith(`/${id}`)).length;
  page.navigation.narrow = true;
  await page.tell('session.upsert', session({ id: 's1', unread: true }), 2);
  expect(read('s1')).toBe(0);
  page.navigation.markShownRead();
  expect(read('s1')).toBe(0);
  await page.tell('session.upsert', session({ id: 's2', unread: true }), 3);
  expect(read('s2')).toBe(1);
  page.navigation.narrow = false;
  page.navigation.markShownRead(); // the window has become wider
  expect(read('s1')).toBe(1);
  page.navigation.narrow = true;
  page.navigation.panes.step('left');
  await vi.advanceTimersByTimeAsync(0);
  expect(read('s1')).toBe(2);
});

test('what is new in the conversation that is looked at is seen', async () => {
  page.navigation.show({ name: 'session', id: 's1' });
  await page.tell('session.upsert', session({ unread: true }), 2);
  expect(page.calls.at(-1)).toMatchObject({ method: 'PATCH', body: { unread: false } });
});

test('a page begins with one look at the conversation that was open last', async () => {
  page.navigation.show({ name: 'session', id: 's1' });
  page.connection.close();
  page.calls = [];
  await page.begin();
  expect(page.calls.filter(({ path }) => path.includes('/entries'))).toHaveLength(1);
});

describe('a place that was found', () => {
  const paths = () => page.calls.map(({ path }) => path).filter((path) => path.includes('/entries'));

  test('is loaded in place of the tail, and its conversation too when no list has brought it', async () => {
    await page.navigation.open('s9', { seq: 40, look: 'found' });
    await vi.advanceTimersByTimeAsync(0);
    expect(page.navigation.view).toEqual({ name: 'session', id: 's9', at: { seq: 40, look: 'found' } });
    expect(page.navigation.current?.title).toBe('Far away');
    expect(paths()).toEqual(['/client/sessions/s9/entries?around=40&limit=60']);
  });

  test('is left for the tail when its conversation is opened as usual', async () => {
    const view = page.transcripts.view('s1', 40);
    await vi.advanceTimersByTimeAsync(0);
    view.newer = 41;
    page.navigation.show({ name: 'session', id: 's1' });
    await vi.advanceTimersByTimeAsync(0);
    expect(paths()).toEqual([
      '/client/sessions/s1/entries?around=40&limit=60',
      '/client/sessions/s1/entries?limit=60',
    ]);
    page.navigation.show({ name: 'session', id: 's1' });
    await vi.advanceTimersByTimeAsync(0);
    expect(paths()).toHaveLength(2);
  });

  test('of a conversation that is gone is said, and what is shown stays', async () => {
    page.refuse = (path) => path.endsWith('/s9') && { code: 'session.gone' };
    await page.navigation.open('s9', { seq: 40, look: 'found' });
    expect(page.navigation.view).toEqual({ name: 'new' });
    expect(page.toasts.list).toHaveLength(1);
  });

  test('the search leads back to where the person was', () => {
    page.navigation.show({ name: 'session', id: 's1' });
    page.navigation.search(7);
    const back = { name: 'session', id: 's1', at: { seq: 7, look: 'place' } };
    expect(page.navigation.view).toEqual({ name: 'search', back });
    const before = page.navigation.view;
    page.navigation.search();
    expect(page.navigation.view).toEqual({ name: 'search', back });
    expect(page.navigation.view).not.toBe(before);
    page.navigation.show({ name: 'inbox' });
    page.navigation.search();
    expect(page.navigation.view).toEqual({ name: 'search', back: { name: 'inbox' } });
  });
});
