import { describe, expect, test, vi } from 'vitest';
import { fakePage } from '../test/page';
import { request, session } from '../test/records';

const page = fakePage();

test('what could not be put away is not said to be', async () => {
  page.navigation.show({ name: 'session', id: 's1' });
  page.refuse = (_, init) => init?.method === 'PATCH' && { code: 'storage', status: 409 };
  await page.lifecycle.archive(session());
  expect(page.toasts.list).toHaveLength(1); // the error
  expect(page.toasts.list[0]?.undo).toBeUndefined();
  expect(page.navigation.view).toEqual({ name: 'session', id: 's1' });
});

test('archiving offers to undo it for five seconds', async () => {
  page.navigation.show({ name: 'session', id: 's1' });
  await page.lifecycle.archive(session());
  expect(page.calls.at(-1)?.body).toEqual({ archived: true });
  expect(page.navigation.view.name).toBe('new');
  page.toasts.list[0]?.undo?.();
  expect(page.calls.at(-1)?.body).toEqual({ archived: false });
  await vi.advanceTimersByTimeAsync(5_000);
  expect(page.toasts.list).toEqual([]);
});

describe('a deleted conversation', () => {
  test('is gone from everything that shows it, and offers to come back', async () => {
    page.navigation.show({ name: 'session', id: 's1' });
    await page.tell('request.upsert', request(), 2);
    await page.lifecycle.delete(session());
    expect(page.calls.at(-1)).toMatchObject({ method: 'DELETE', path: '/client/sessions/s1' });
    await page.tell('session.removed', { id: 's1' }, 3);
    expect([page.conversations.sessions.size, page.inbox.waiting.length, page.navigation.view.name]).toEqual([
      0,
      0,
      'new',
    ]);
    expect(localStorage.getItem('deskhand.last')).toBeNull();
    page.toasts.undo();
    await vi.advanceTimersByTimeAsync(0);
    expect(page.calls.some((call) => call.path === '/client/sessions/s1/restore')).toBe(true);
    expect(page.toasts.list).toEqual([]);
  });

  test('is not where the search leads back to', async () => {
    page.navigation.show({ name: 'session', id: 's1' });
    page.navigation.search();
    await page.tell('session.removed', { id: 's1' }, 2);
    expect(page.navigation.view).toEqual({ name: 'search', back: { name: 'new' } });
  });

  test('that could not be deleted stays', async () => {
    page.refuse = (path) => path.endsWith('/s1') && { code: 'storage.failed' };
    await page.lifecycle.delete(session());
    expect(page.toasts.list.map((toast) => [toast.tone, toast.undo])).toEqual([['danger', undefined]]);
  });
});

test('a fork is shown, unless the person has gone elsewhere meanwhile', async () => {
  page.navigation.show({ name: 'session', id: 's1' });
  await page.lifecycle.fork(session());
  expect(page.navigation.view).toEqual({ name: 'session', id: 's2' });
  page.navigation.show({ name: 'session', id: 's1' });
  const begun = page.lifecycle.continueWith(session(), 'codex');
  page.navigation.show({ name: 'inbox' });
  await begun;
  expect(page.navigation.view).toEqual({ name: 'inbox' });
  expect(page.conversations.sessions.get('s3')?.agent).toBe('codex');
});

describe('a conversation that begins slowly', () => {
  const slowly = () => {
    let made = (): void => undefined;
    page.forking = new Promise((done) => (made = done));
    return () => made();
  };
  const asked = () => page.calls.filter(({ path }) => path === '/client/sessions/s1/fork').length;

  test('says so until it is there, and is begun once', async () => {
    const made = slowly();
    page.navigation.show({ name: 'session', id: 's1' });
    const begun = page.lifecycle.fork(session({ title: 'Fix login' }));
    await page.lifecycle.fork(session());
    await vi.advanceTimersByTimeAsync(900);
    expect(page.toasts.list).toEqual([]);
    await vi.advanceTimersByTimeAsync(60_000);
    for (const text of ['one', 'two', 'three']) page.toasts.show({ text, tone: 'info' });
    expect(page.toasts.list.map(({ text }) => text)).toEqual(['Forking “Fix login”…', 'one', 'two', 'three']);
    made();
    await begun;
    expect(page.toasts.list.some(({ cancel }) => cancel)).toBe(false);
    expect([asked(), page.navigation.view]).toEqual([1, { name: 'session', id: 's2' }]);
    await page.lifecycle.fork(session());
    expect(asked()).toBe(2);
  });

  test('is deleted when it comes after it was given up', async () => {
    const made = slowly();
    page.navigation.show({ name: 'session', id: 's1' });
    const begun = page.lifecycle.fork(session());
    await vi.advanceTimersByTimeAsync(1_000);
    page.toasts.list[0]?.cancel?.();
    expect(page.calls.some(({ method }) => method === 'DELETE')).toBe(false);
    made();
    await begun;
    expect(page.calls.some(({ path, method }) => path === '/client/sessions/s2' && method === 'DELETE')).toBe(
      true,
    );
    expect(page.navigation.view).toEqual({ name: 'session', id: 's1' });
    expect(page.toasts.list.some(({ cancel }) => cancel)).toBe(false);
  });
});

test('the window writes what is exported, and says where', async () => {
  const SaveExport = vi.fn(() => Promise.resolve('/home/ada/a.md'));
  (window as { go?: unknown }).go = { app: { Files: { SaveExport } } };
  await page.lifecycle.export(session(), 'md');
  expect(SaveExport).toHaveBeenCalledWith(
    'Save the conversation as Markdown',
    '/client/sessions/s1/export?format=md',
  );
  expect(page.toasts.list.at(-1)?.text).toBe('Saved as /home/ada/a.md');
  SaveExport.mockResolvedValueOnce(''); // the person cancels
  await page.lifecycle.export(session(), 'json');
  expect(page.toasts.list).toHaveLength(1);
  delete (window as { go?: unknown }).go;
});
