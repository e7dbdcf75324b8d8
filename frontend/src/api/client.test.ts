import { beforeEach, describe, expect, test, vi } from 'vitest';
import { event, request } from '../test/records';
import { unlimited } from './limit';
import { Client } from './client';
import { ApiError } from './errors';

let held: Map<string, string>;
let fetched: ReturnType<typeof vi.fn<typeof fetch>>;
let client: Client;

const json = (body: unknown, status = 200) =>
  new Response(JSON.stringify(body), { status, headers: { 'Content-Type': 'application/json' } });

function call(n = 0) {
  const [path, init] = fetched.mock.calls[n] ?? [];
  return { path, method: init?.method, headers: new Headers(init?.headers), body: init?.body };
}

beforeEach(() => {
  held = new Map();
  fetched = vi.fn<typeof fetch>(() => Promise.resolve(json({ items: [] })));
  client = new Client({
    fetch: fetched,
    surface: 'browser',
    storage: {
      getItem: (key) => held.get(key) ?? null,
      setItem: (key, value) => void held.set(key, value),
      removeItem: (key) => void held.delete(key),
    },
  });
});

describe('signing in', () => {
  test('exchanges the code of the fragment for a token, which every later call carries', async () => {
    fetched.mockResolvedValueOnce(json({ token: 'T' }));
    expect(await client.login('#code=abc')).toBe(true);
    expect(call()).toMatchObject({ path: '/client/login', method: 'POST', body: '{"code":"abc"}' });
    expect(call().headers.has('Authorization')).toBe(false);
    await client.inbox();
    expect(call(1).headers.get('Authorization')).toBe('Bearer T');
  });

  test('does nothing without a code: in the window none is needed', async () => {
    expect(await client.login('')).toBe(false);
    expect(await client.login('#other=1')).toBe(false);
    expect(fetched).not.toHaveBeenCalled();
    await client.inbox();
    expect(call().headers.has('Authorization')).toBe(false);
  });

  test('forgets an old token even when the code is refused', async () => {
    held.set('deskhand.token', 'old');
    fetched.mockResolvedValueOnce(json({ code: 'login.code', status: 401 }, 401));
    await expect(client.login('#code=used')).rejects.toMatchObject({ code: 'login.code', status: 401 });
    expect(held.size).toBe(0);
  });
});

describe('calls', () => {
  test('go to relative addresses and tell the surface', async () => {
    await client.entries('s/1', 40);
    expect(call().path).toBe('/client/sessions/s%2F1/entries?before=40&limit=200');
    expect(call().headers.get('Deskhand-Surface')).toBe('browser');
  });

  test('take lists that are null as empty', async () => {
    fetched.mockResolvedValueOnce(json({ items: null, turns: null, requests: null }));
    expect(await client.entries('s1')).toEqual({ items: [], turns: [], requests: [] });
  });

  test('ask for entries around and after a place', async () => {
    fetched.mockImplementation(() => Promise.resolve(json({ items: null, next: 3, newer: 9 })));
    expect(await client.entriesAround('s1', 7)).toMatchObject({ next: 3, newer: 9 });
    expect(call().path).toBe('/client/sessions/s1/entries?around=7&limit=200');
    await client.entriesAfter('s1', 9);
    expect(call(1).path).toBe('/client/sessions/s1/entries?after=9&limit=200');
  });

  test('search with the filters that are set', async () => {
    fetched.mockResolvedValueOnce(json({ items: null, pending: 2 }));
    const found = await client.find({ q: 'a & b', agent: '', limit: 50 }, new AbortController().signal);
    expect(found).toEqual({ items: [], pending: 2 });
    expect(call().path).toBe('/client/search?q=a+%26+b&limit=50');
  });

  test('export with the name that the server gives', async () => {
    const named = { 'Content-Disposition': 'attachment; filename=talk.md' };
    fetched.mockResolvedValueOnce(new Response('# Talk', { headers: named }));
    fetched.mockResolvedValueOnce(new Response('PK'));
    const { signal } = new AbortController();
    const file = await client.exportSession('s1', 'md', signal);
    expect([file.name, await file.content.text()]).toEqual(['talk.md', '# Talk']);
    expect(call().path).toBe('/client/sessions/s1/export?format=md');
    expect((await client.exportSession('s1', 'recording', signal)).name).toBe('conversation.deskhand.zip');
  });

  test('without content are done with any success', async () => {
    fetched.mockResolvedValueOnce(new Response(null, { status: 204 }));
    await expect(client.answer('r1', { optionId: 'yes' })).resolves.toBeUndefined();
    expect(call()).toMatchObject({ path: '/client/requests/r1/answer', body: '{"optionId":"yes"}' });
  });

  test('ask for events from where the reader stands', async () => {
    fetched.mockImplementation(() => Promise.resolve(json({ gen: 'g', seq: 1, events: [] })));
    await client.events(undefined, 25, new AbortController().signal);
    await client.events({ gen: 'g', seq: 7 }, 25, new AbortController().signal);
    await client.events({ gen: 'g', seq: 8 }, 25, new AbortController().signal);
    // The place in the feed goes into a header, so that the address is the same in each call: engines keep every address.
    expect([0, 1, 2].map((n) => call(n).path)).toEqual([
      '/client/events',
      '/client/events?wait=25',
      '/client/events?wait=25',
    ]);
    expect(
      [1, 2].map((n) => ['Gen', 'After'].map((name) => call(n).headers.get(`Deskhand-${name}`))),
    ).toEqual([
      ['g', '7'],
      ['g', '8'],
    ]);
  });
});

describe('a write that was lost on its way', () => {
  const key = (n: number) => call(n).headers.get('Idempotency-Key');
  const prompt = () => client.prompt('s1', 'do it', 'queue', []);

  test('has the same key when it is given again soon, and another one later', async () => {
    vi.useFakeTimers();
    fetched.mockRejectedValueOnce(new TypeError('Failed to fetch'));
    await expect(prompt()).rejects.toMatchObject({ code: 'network' });
    fetched.mockResolvedValueOnce(new Response('{"turn":', { status: 202 })); // the body breaks off
    await expect(prompt()).rejects.toThrow();
    fetched.mockRejectedValueOnce(new TypeError('Failed to fetch'));
    await expect(client.prompt('s1', 'do something else', 'queue', [])).rejects.toThrow();
    fetched.mockRejectedValueOnce(new TypeError('Failed to fetch'));
    await expect(prompt()).rejects.toThrow();
    vi.advanceTimersByTime(61_000);
    fetched.mockImplementation(() => Promise.resolve(json({})));
    await prompt();
    await prompt();
    expect(key(0)).toMatch(/^"[0-9a-f-]{36}"$/);
    const keys = [0, 1, 2, 3, 4, 5].map(key);
    expect(keys.map((one) => keys.indexOf(one))).toEqual([0, 0, 2, 0, 4, 5]);
    vi.useRealTimers();
  });

  test('has another key once the message has come in', async () => {
    const said = (session: string, type: string, data: unknown) => ({ ...event(type, data), session });
    const again = async (...events: ReturnType<typeof said>[]) => {
      fetched.mockRejectedValueOnce(new TypeError('Failed to fetch'));
      await expect(prompt()).rejects.toThrow();
      client.deliver(events);
      fetched.mockImplementation(() => Promise.resolve(json({})));
      await prompt();
      const calls = fetched.mock.calls.length;
      return key(calls - 2) !== key(calls - 1);
    };
    expect(await again(said('s1', 'entry.upsert', { kind: 'user', text: 'do it' }))).toBe(true);
    expect(await again(said('s1', 'queue.upsert', { message: 'do it' }))).toBe(true);
    expect(
      await again(
        said('s2', 'entry.upsert', { kind: 'user', text: 'do it' }),
        said('s1', 'entry.upsert', { kind: 'agent', text: 'do it' }),
        said('s1', 'queue.upsert', { message: 'do it all' }),
      ),
    ).toBe(false);
  });

  test('is one that would make two of something', async () => {
    await client.inbox();
    await client.cancel('s1');
    await client.prompt('s1', 'look at this', 'queue', ['a']);
    await client.forkSession('s1');
    expect([0, 1, 2, 3].map((n) => key(n) !== null)).toEqual([false, false, true, true]);
  });
});

describe('errors', () => {
  const failure = async (answer: Response | Error) => {
    if (answer instanceof Error) fetched.mockRejectedValueOnce(answer);
    else fetched.mockResolvedValueOnce(answer);
    return client.hello().then(
      () => undefined,
      (thrown: unknown) => thrown as ApiError,
    );
  };

  test('are the codes and parameters of problems', async () => {
    const error = await failure(
      json({ code: 'request.resolved', params: { status: 'answered', n: 2 }, detail: 'late' }, 409),
    );
    expect(error).toBeInstanceOf(ApiError);
    expect(error).toMatchObject({
      code: 'request.resolved',
      params: { status: 'answered', n: '2' },
      status: 409,
      detail: 'late',
    });
  });

  test('have a code also where the body is none', async () => {
    expect(await failure(new Response('<html>', { status: 502 }))).toMatchObject({
      code: 'http',
      status: 502,
    });
    expect(await failure(json({ code: '' }, 500))).toMatchObject({ code: 'http', params: { status: '500' } });
    expect(await failure(new Response('no json'))).toMatchObject({ code: 'protocol' });
    expect(await failure(new TypeError('Failed to fetch'))).toMatchObject({ code: 'network', status: 0 });
  });

  test('tell of a call that nobody answered, after 40 s', async () => {
    vi.useFakeTimers();
    fetched.mockImplementationOnce(
      (_, init) =>
        new Promise((__, reject) =>
          init?.signal?.addEventListener('abort', () => reject(new Error('aborted'))),
        ),
    );
    const lost = expect(client.createSession({ agent: 'mock', cwd: '/' })).rejects.toMatchObject({
      code: 'timeout',
    });
    await vi.advanceTimersByTimeAsync(40_000);
    await lost;
    vi.useRealTimers();
  });

  test('are not made of what takes as long as git or a disk does', async () => {
    vi.useFakeTimers();
    fetched.mockImplementation((_, init) =>
      init?.method === 'GET'
        ? Promise.resolve(json({}))
        : new Promise((done, fail) => {
            init?.signal?.addEventListener('abort', () => fail(new Error('aborted')));
            setTimeout(() => done(json({})), 600_000);
          }),
    );
    const calls = Promise.allSettled([
      client.createSession({ agent: 'mock', cwd: '/', worktree: true }),
      client.forkSession('s1'),
      client.call('DELETE /client/storage/work', { signal: unlimited() }),
    ]);
    await vi.advanceTimersByTimeAsync(600_000);
    expect((await calls).map(({ status }) => status)).toEqual(Array(3).fill('fulfilled'));
    vi.useRealTimers();
  });

  test('tell of a call that was given up, or that nobody answered in time, where both may end it', async () => {
    vi.useFakeTimers();
    vi.spyOn(AbortSignal, 'any').mockImplementation(() => {
      throw new TypeError('AbortSignal.any is not a function'); // as in an older engine
    });
    fetched.mockImplementation(
      (_, init) =>
        new Promise((__, fail) => init?.signal?.addEventListener('abort', () => fail(new Error('aborted')))),
    );
    const life = new AbortController();
    const place = () => client.call('GET /client/storage', { end: life.signal });
    const late = expect(place()).rejects.toMatchObject({ code: 'timeout' });
    await vi.advanceTimersByTimeAsync(40_000);
    await late;
    const gone = expect(place()).rejects.toMatchObject({ name: 'AbortError' });
    life.abort();
    await gone;
    vi.useRealTimers();
  });

  test('of a call that was given up are its reason', async () => {
    const given = new AbortController();
    fetched.mockImplementationOnce(() => Promise.reject(new DOMException('aborted', 'AbortError')));
    given.abort(new DOMException('late', 'TimeoutError'));
    await expect(client.hello(given.signal)).rejects.toMatchObject({ name: 'TimeoutError' });
  });
});

describe('questions', () => {
  test('are told to those who asked, until they end it', () => {
    const listener = vi.fn();
    const end = client.onQuestion(listener);
    const question = request({ kind: 'question' });
    const address = request({ id: 'r2', kind: 'url', url: 'https://example.com/', host: 'example.com' });
    client.deliver([
      event('request.upsert', question),
      event('request.upsert', address),
      event('request.upsert', request({ kind: 'permission' })),
      event('request.upsert', request({ kind: 'form', status: 'answered' })),
      event('session.upsert', {}),
    ]);
    expect(listener.mock.calls).toEqual([[question], [address]]);
    end();
    client.deliver([event('request.upsert', question)]);
    expect(listener).toHaveBeenCalledTimes(2);
  });

  test('are answered and turned down by their own names', async () => {
    fetched.mockImplementation(() => Promise.resolve(new Response(null, { status: 204 })));
    await client.replyQuestion(request({ kind: 'question' }), [['a']]);
    await client.rejectQuestion(request({ kind: 'question' }));
    expect(call(0)).toMatchObject({
      path: '/client/sessions/s1/questions/r1/reply',
      method: 'POST',
      body: '{"answers":[["a"]]}',
    });
    expect(call(1)).toMatchObject({ path: '/client/sessions/s1/questions/r1/reject', method: 'POST' });
  });
});
