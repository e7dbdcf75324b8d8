import { describe, expect, test, vi } from 'vitest';
import { ApiError } from '../api/errors';
import { fakePage } from '../test/page';
import { request, session } from '../test/records';

const page = fakePage();

test('requests wait in the inbox until somebody answers them anywhere', async () => {
  await page.tell('request.upsert', request(), 2);
  expect(page.inbox.waiting.map((one) => one.id)).toEqual(['r1']);
  expect(page.toasts.announcement).toBe('Needs approval: Edit app.ts');
  await page.tell('request.upsert', request({ status: 'answered', answeredBy: 'window' }), 3);
  expect(page.inbox.waiting).toEqual([]);
});

test('a set-up that holds an agent counts beside the requests', async () => {
  await page.tell('request.upsert', request(), 2);
  await page.tell('session.upsert', session({ setup: { state: 'failed', waiting: true } }), 3);
  expect([page.inbox.count, page.conversations.held.length]).toEqual([2, 1]);
  await page.tell('session.upsert', session({ setup: { state: 'without' } }), 4);
  expect([page.inbox.count, page.conversations.held.length]).toEqual([1, 0]);
});

test('a request that is answered while a page with it is under way does not wait again', async () => {
  await page.tell('request.upsert', request(), 2);
  let arrives!: () => void;
  page.slow = new Promise((done) => (arrives = done));
  page.transcripts.view('s1');
  await page.tell('request.upsert', request({ status: 'answered', answeredBy: 'window' }), 3);
  page.stored.requests = [request()];
  arrives();
  await vi.advanceTimersByTimeAsync(0);
  expect(page.transcripts.view('s1').items).toHaveLength(1);
  expect(page.inbox.waiting).toEqual([]);
});

test('after a gap the inbox is that of the snapshot', async () => {
  await page.tell('request.upsert', request(), 2);
  await page.feed({ gen: 'g', seq: 90, reset: true, events: [] });
  expect(page.inbox.waiting).toEqual([]);
});

test('after a gap a request that was answered meanwhile waits no more where its conversation is open, though no page tells how', async () => {
  page.navigation.show({ name: 'session', id: 's1' });
  await page.tell('request.upsert', request(), 2);
  await page.feed({ gen: 'g', seq: 90, reset: true, events: [] });
  expect(page.inbox.waiting).toEqual([]);
  await page.tell('request.upsert', request(), 91); // a request that arrived while the snapshots were read
  expect(page.inbox.waiting).toHaveLength(1);
});

test('a request that is asked again after the program has died waits again', async () => {
  page.navigation.show({ name: 'session', id: 's1' });
  await page.tell('request.upsert', request(), 2);
  await page.tell('request.upsert', request({ status: 'answered', answeredBy: 'window' }), 3);
  expect(page.inbox.waiting).toEqual([]);
  page.stored.inbox = page.stored.requests = [request()];
  await page.feed({ gen: 'g2', seq: 1, reset: true, events: [] });
  expect(page.inbox.waiting.map((one) => one.id)).toEqual(['r1']);
});

describe('answers', () => {
  test('go by the kind of the request', async () => {
    await page.inbox.answer(request(), { optionId: 'yes' });
    await page.inbox.answer(request({ id: 'r2', kind: 'question' }), { answers: [['a']] });
    await page.inbox.answer(request({ id: 'r3', kind: 'question' }), { reject: true });
    expect(page.calls.slice(-3).map(({ path, body }) => [path, body])).toEqual([
      ['/client/requests/r1/answer', { optionId: 'yes' }],
      ['/client/sessions/s1/questions/r2/reply', { answers: [['a']] }],
      ['/client/sessions/s1/questions/r3/reject', undefined],
    ]);
  });

  test('that come second are told and done with', async () => {
    let params: Record<string, string> = {};
    page.refuse = (path) => path.endsWith('/answer') && { code: 'request.resolved', params };
    const told = async (status: string, answeredBy = '') => {
      params = { status, answeredBy };
      await expect(page.inbox.answer(request(), { optionId: 'yes' })).resolves.toBe(false);
      return page.toasts.list.at(-1)?.text;
    };
    expect(await told('answered', 'cli')).toBe('Too late: this was answered from the command line.');
    expect(await told('rejected', 'browser')).toBe('Too late: this was declined from a browser.');
    expect(await told('cancelled')).toBe('Too late: the agent withdrew it.');
    expect(await told('expired')).toBe('Too late: its agent has ended.');
    expect(await told('answered', 'unheard of')).toBe('This was already answered.');
  });

  test('that fail are thrown, so that what was filled in can stay', async () => {
    page.refuse = (path) => path.endsWith('/answer') && { code: 'answer.invalid', params: { detail: 'x' } };
    await expect(page.inbox.answer(request(), { optionId: 'yes' })).rejects.toBeInstanceOf(ApiError);
    expect(page.toasts.list).toHaveLength(1);
  });
});
