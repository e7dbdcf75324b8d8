import { afterEach, beforeEach, expect, test, vi } from 'vitest';
import { Client } from '../api/client';
import { isReply, latin, TerminalLink } from './terminal';

// A terminal on a fake server.

let reads: { path: string; after: string | null; answer: (status: number, body?: unknown) => void }[];
let inputs: { text: string; done: (status?: number) => void }[];
let shown: string[];
let link: TerminalLink;
let run: Promise<void>;

const bytes = (text: string) => new TextEncoder().encode(text);
const settle = async () => {
  for (let i = 0; i < 20; i++) await Promise.resolve();
};
const output = (text: string, next: number, more = {}) => ({
  data: btoa(text),
  from: next - text.length,
  next,
  seen: 0,
  ...more,
});

beforeEach(() => {
  vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout'] });
  reads = [];
  inputs = [];
  shown = [];
  const fetched = ((path: string, init?: RequestInit) =>
    new Promise<Response>((done, fail) => {
      init?.signal?.addEventListener('abort', () => fail(new DOMException('Aborted', 'AbortError')));
      const answer = (status: number, body?: unknown) =>
        status === 0
          ? fail(new TypeError('gone'))
          : done(new Response(body === undefined ? null : JSON.stringify(body), { status }));
      if (path.endsWith('/input')) {
        const text = new TextDecoder().decode(init?.body as Uint8Array);
        inputs.push({ text, done: (status = 204) => answer(status) });
      } else reads.push({ path, after: new Headers(init?.headers).get('Deskhand-After'), answer });
    })) as typeof fetch;
  const client = new Client({ fetch: fetched, surface: 'browser', storage: sessionStorage });
  link = new TerminalLink(client, 't 1', {
    write: async (data, again) => {
      const text = new TextDecoder().decode(data);
      shown.push(again ? `(${text})` : text);
    },
    skipped: () => shown.push('<skipped>'),
    link: (live) => shown.push(live ? '<live>' : '<lost>'),
    ended: (code) => shown.push(`<ended ${code}>`),
    refused: () => shown.push('<refused>'),
  });
  run = link.run();
});

afterEach(async () => {
  link.close();
  await run;
  vi.useRealTimers();
});

async function read(status: number, body?: unknown) {
  reads.at(-1)?.answer(status, body);
  await settle();
}

test('output is followed by bytes to the end of the program', async () => {
  expect(reads[0]).toMatchObject({ path: '/client/terminals/t%201?wait=25', after: '0' });
  await read(200, output('user: ', 6));
  expect(reads[1]).toMatchObject({ path: '/client/terminals/t%201?wait=25', after: '6' });
  await read(200, output('', 6));
  expect(reads[2]?.after).toBe('6');
  await read(200, output('bye', 9, { exited: true, exitCode: 3 }));
  expect(shown).toEqual(['user: ', 'bye', '<ended 3>']);
  expect(reads).toHaveLength(3);
});

test('what an earlier screen has shown and answered is shown as such, and nothing behind it', async () => {
  await read(200, output('seen', 4, { seen: 7 }));
  await read(200, output('yesno', 9, { seen: 9 }));
  await read(200, output('new', 12, { seen: 12 }));
  expect(shown).toEqual(['(seen)', '(yes)', 'no', 'new']);
});

test('output that nobody read in time is said to be missing', async () => {
  await read(200, output('late', 104));
  expect(shown).toEqual(['<skipped>', 'late']);
});

test('a server that does not answer is asked again from the same place, and one that knows it no more is not', async () => {
  await read(200, output('one', 3));
  await read(0);
  expect(shown).toEqual(['one', '<lost>']);
  await vi.advanceTimersByTimeAsync(250);
  await read(500, {});
  await vi.advanceTimersByTimeAsync(499);
  expect(reads).toHaveLength(3);
  await vi.advanceTimersByTimeAsync(1);
  expect(reads[3]?.after).toBe('3');
  await read(200, output('two', 6));
  await read(404, { code: 'not_found' });
  expect(shown).toEqual(['one', '<lost>', '<live>', 'two', '<ended undefined>']);
  await vi.advanceTimersByTimeAsync(10_000);
  expect(reads).toHaveLength(5);
});

test('what is typed goes out in order, one request at a time', async () => {
  link.type(bytes('a'));
  link.type(bytes('b'));
  link.type(bytes('c'));
  expect(inputs.map(({ text }) => text)).toEqual(['a']);
  inputs[0]?.done();
  await settle();
  expect(inputs.map(({ text }) => text)).toEqual(['a', 'bc']);
  inputs[1]?.done();
  await settle();
  link.type(bytes('d'));
  expect(inputs.map(({ text }) => text)).toEqual(['a', 'bc', 'd']);
});

test('much that is pasted goes in parts, and a refusal drops the rest', async () => {
  link.type(bytes('x'.repeat(40_000)));
  expect(inputs[0]?.text).toHaveLength(16_384);
  inputs[0]?.done(409);
  await settle();
  expect(inputs).toHaveLength(1);
  expect(shown).toEqual(['<refused>']);
  link.type(bytes('y'));
  expect(inputs[1]?.text).toBe('y');
});

test('nothing is sent when it is closed', async () => {
  link.close();
  link.type(bytes('x'));
  await run;
  expect(inputs).toEqual([]);
});

test('mouse reports are bytes, not text', () => {
  expect([...latin('\x1b[M\xff')]).toEqual([0x1b, 0x5b, 0x4d, 0xff]);
});

test('what a screen answers by itself is told from what a person types', () => {
  for (const reply of [
    '\x1b[?1;2c',
    '\x1b[>0;276;0c',
    '\x1b[24;80R',
    '\x1b[0n',
    '\x1b[I',
    '\x1b[O',
    '\x1b[?2004;1$y',
    '\x1b]10;rgb:ff/ff/ff\x1b\\',
    '\x1bP1$r0m\x1b\\',
    '\x1b[8;24;80t',
  ])
    expect([reply, isReply(reply)]).toEqual([reply, true]);
  for (const typed of [
    'e',
    'exit 3\r',
    '\x1b',
    '\x1b[A',
    '\x1bOP',
    '\x1b[3~',
    '\x1b[1;5C',
    '\x1bx',
    '\x1b]',
    '\x1bP',
    '\x1b[200~text\x1b[201~',
    'ü',
  ])
    expect([typed, isReply(typed)]).toEqual([typed, false]);
});
