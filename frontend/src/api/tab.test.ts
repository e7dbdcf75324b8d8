import { beforeEach, describe, expect, test, vi } from 'vitest';
import { Client } from './client';

// The server as a tab sees it. It can restart, and another program can take its port.

const host = '127.0.0.1:2468';
const id = 'AAAAAAAAAAAAAAAAAAAAAA';
const secret = new Uint8Array(32).fill(7);

const base64 = (data: ArrayBuffer | Uint8Array<ArrayBuffer>) =>
  Buffer.from(data as ArrayBuffer).toString('base64url');
async function sign(...lines: string[]): Promise<string> {
  const key = await crypto.subtle.importKey('raw', secret, { name: 'HMAC', hash: 'SHA-256' }, false, [
    'sign',
  ]);
  return base64(await crypto.subtle.sign('HMAC', key, new TextEncoder().encode(lines.join('\n'))));
}
const tokenOf = async (start: string) => `tab.${id}.${await sign('deskhand tab token', start)}`;

type Who = 'program' | 'nobody' | 'thief' | 'relay';
let who: Who;
let start: string;
let held: Map<string, string>;
let client: Client;
/** The received requests: the path, and the rest as text. */
let seen: { by: Who; path: string; all: string }[];

const json = (body: unknown, status = 200) => new Response(JSON.stringify(body), { status });

async function serve(path: string, init?: RequestInit): Promise<Response> {
  const headers = new Headers(init?.headers);
  seen.push({ by: who, path, all: JSON.stringify([...headers, init?.body ?? '']) });
  const body = typeof init?.body === 'string' ? (JSON.parse(init.body) as Record<string, string>) : {};
  switch (who) {
    case 'nobody':
      throw new TypeError('Failed to fetch');
    case 'thief': // the thief answers as he likes, for example with a recorded answer
      return json({ items: [], start: 'one', proof: await sign('deskhand tab proof', host, 'old', 'one') });
    case 'relay': // the real server runs at another port by now, and proves itself for that port
      return json({
        start,
        proof: await sign('deskhand tab proof', '127.0.0.1:9999', body['nonce'] ?? '', start),
      });
  }
  if (path === '/client/login') return json({ tab: id, key: base64(secret), token: await tokenOf(start) });
  if (path === '/client/tab/proof')
    return json({ start, proof: await sign('deskhand tab proof', host, body['nonce'] ?? '', start) });
  if (headers.get('Authorization') !== `Bearer ${await tokenOf(start)}`)
    return json({ code: 'token_invalid' }, 401);
  if (path === '/client/tab') return json({ tab: id, key: base64(secret), token: await tokenOf(start) });
  return json({ items: [] });
}

function open(): Client {
  return new Client({
    fetch: vi.fn((path: RequestInfo | URL, init?: RequestInit) => serve(path as string, init)),
    surface: 'browser',
    host,
    storage: {
      getItem: (key) => held.get(key) ?? null,
      setItem: (key, value) => void held.set(key, value),
      removeItem: (key) => void held.delete(key),
    },
  });
}

beforeEach(async () => {
  [who, start, held, seen] = ['program', 'one', new Map(), []];
  client = open();
  await client.login('#code=abc');
  await client.inbox();
});

describe('a tab', () => {
  test('goes on after a restart, by a new token, and has sent the old one to nobody else', async () => {
    who = 'nobody';
    await expect(client.inbox()).rejects.toMatchObject({ code: 'network' });
    [who, start] = ['program', 'two'];
    seen = [];
    await client.inbox();
    expect(seen.map(({ path }) => path)).toEqual(['/client/tab/proof', '/client/inbox']);
    expect(held.get('deskhand.token')).toBe(await tokenOf('two'));
  });

  test('goes on after a restart that no call has noticed', async () => {
    start = 'two';
    await client.inbox();
    expect(held.get('deskhand.token')).toBe(await tokenOf('two'));
  });

  test.each(['thief', 'relay'] as const)(
    'sends neither token nor words to a %s on its port',
    async (other) => {
      who = 'nobody';
      await expect(client.inbox()).rejects.toMatchObject({ code: 'network' });
      const sent = seen.length;
      who = other;
      start = 'two';
      await expect(client.inbox()).rejects.toMatchObject({ code: 'server.unproven', status: 0 });
      await expect(client.patchSession('s1', { title: 'my own words' })).rejects.toMatchObject({
        code: 'server.unproven',
      });
      await expect(client.headers()).rejects.toMatchObject({ code: 'server.unproven' });
      const got = seen.slice(sent);
      expect(new Set(got.map(({ path }) => path))).toEqual(new Set(['/client/tab/proof']));
      for (const secretText of ['Bearer', await tokenOf('one'), base64(secret), 'my own words'])
        expect(JSON.stringify(got)).not.toContain(secretText);
      who = 'program';
      await client.inbox();
    },
  );

  test('that was loaded anew goes on as well, and keeps its key where no page finds it', async () => {
    client = open();
    await client.inbox();
    // The tab fetches its key in parallel to the first calls.
    await vi.waitFor(async () => {
      who = 'nobody';
      await expect(client.inbox()).rejects.toMatchObject({ code: 'network' });
      [who, start] = ['program', 'two'];
      await client.inbox();
    });
    expect(JSON.stringify([...held])).not.toContain(base64(secret));
  });

  test('whose token is refused by the very start that it is for is signed out', async () => {
    held.set('deskhand.token', await tokenOf('one'));
    who = 'program';
    const refusing = vi.fn((path: RequestInfo | URL, init?: RequestInit) =>
      path === '/client/inbox'
        ? Promise.resolve(json({ code: 'token_invalid' }, 401))
        : serve(path as string, init),
    );
    client = new Client({
      fetch: refusing,
      surface: 'browser',
      host,
      storage: {
        getItem: (key) => held.get(key) ?? null,
        setItem: (key, value) => void held.set(key, value),
        removeItem: (key) => void held.delete(key),
      },
    });
    await client.login('#code=abc');
    await expect(client.inbox()).rejects.toMatchObject({ status: 401 });
  });
});
