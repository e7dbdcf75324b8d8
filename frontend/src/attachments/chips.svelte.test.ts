import { afterEach, beforeEach, expect, test, vi } from 'vitest';
import '../strings/attachments';
import { ApiError } from '../api/errors';
import type { Attachment } from '../api/records';
import { Chips, chipsOf, leaveChips } from './chips.svelte';
import { mostBytes } from './limits';

const file = (id: string, part: Partial<Attachment> = {}): Attachment => ({
  id,
  filename: `${id}.txt`,
  mimeType: 'text/plain',
  size: 3,
  path: `/work/${id}.txt`,
  ...part,
});

/** A fake XMLHttpRequest that answers when the test says so. */
class Line {
  static all: Line[] = [];
  upload: { onprogress?: (event: { loaded: number }) => void } = {};
  onload?: () => void;
  onabort?: () => void;
  status = 0;
  response: unknown;
  open = vi.fn();
  setRequestHeader = vi.fn();
  send = vi.fn(() => Line.all.push(this));
  abort = vi.fn(() => this.onabort?.());

  answer(status: number, response: unknown) {
    this.status = status;
    this.response = response;
    this.onload?.();
  }
}

const patchSession = vi.fn((_id: string, _patch: object, _last?: boolean) => Promise.resolve({}));
const call = vi.fn();
const client = { patchSession, call, headers: () => new Headers({ Authorization: 'Bearer x' }) } as never;
const saved = () =>
  patchSession.mock.calls.map(([, patch]) => (patch as { attachments: string[] }).attachments.join());
const names = (chips: Chips) => chips.items.map((one) => one.id).join();
const settle = () => new Promise((done) => setTimeout(done));

beforeEach(() => {
  Line.all = [];
  vi.stubGlobal('XMLHttpRequest', Line);
});

afterEach(() => {
  vi.unstubAllGlobals();
  vi.clearAllMocks();
  call.mockReset();
});

test('paths are taken in together; what is wrong with one keeps the others', async () => {
  const chips = new Chips({ id: 's1', attachments: [file('a')] }, client);
  call.mockResolvedValueOnce({
    items: [file('b'), file('other', { path: '/work/a.txt' })],
    problems: [
      { name: 'gone.txt', code: 'attachment.missing', params: {} },
      { name: 'link.txt', code: 'attachment.link_outside', params: {} },
    ],
  });
  chips.addPaths(['/work/b.txt', '/work/a.txt', '/work/gone.txt', '/x/link.txt']);
  expect(chips.coming.map((one) => one.name)).toEqual(['4 files']);
  await chips.ended();
  await settle();
  expect([names(chips), chips.coming.length, saved()]).toEqual(['a,b', 0, ['a,b']]); // a is attached already
  expect(chips.troubles.map((one) => [one.name, one.follow])).toEqual([
    ['gone.txt', undefined],
    ['link.txt', '/x/link.txt'],
  ]);
  call.mockResolvedValueOnce({ items: [file('link')], problems: [] });
  const [, link] = chips.troubles;
  if (link) chips.follow(link);
  await chips.ended();
  expect(call.mock.lastCall?.[1]).toMatchObject({
    body: { paths: ['/x/link.txt'], session: 's1', follow: true },
  });
  expect([names(chips), chips.troubles.length]).toEqual(['a,b,link', 1]);
});

test('uploads go one after the other, tell how far they are, and can be cancelled', async () => {
  const chips = new Chips({ id: 's1' }, client);
  chips.addFiles([new File(['one'], 'one.txt'), new File(['two'], 'two.txt')]);
  await vi.waitFor(() => expect(Line.all.length).toBe(1));
  Line.all[0]?.upload.onprogress?.({ loaded: 2 });
  expect(chips.coming.map((one) => [one.name, one.sent, one.size])).toEqual([
    ['one.txt', 2, 3],
    ['two.txt', 0, 3],
  ]);
  chips.cancel(chips.coming[0]?.key ?? 0);
  expect(Line.all[0]?.abort).toHaveBeenCalled();
  await vi.waitFor(() => expect(Line.all.length).toBe(2));
  Line.all[1]?.answer(201, { items: [file('two', { path: '' })], problems: [] });
  await chips.ended();
  expect([names(chips), chips.troubles.length, chips.coming.length]).toEqual(['two', 0, 0]);
  chips.addFiles([new File(['x'], 'refused.txt')]);
  await vi.waitFor(() => expect(Line.all.length).toBe(3));
  Line.all[2]?.answer(413, { code: 'attachment.too_large', params: { limit: '1 KiB' } });
  await chips.ended();
  expect(chips.troubles.map((one) => one.text)).toEqual([
    'refused.txt is too large: at most 1 KiB per file.',
  ]);
});

test('what is too much is not sent', () => {
  const chips = new Chips(
    { id: 's1', attachments: Array.from({ length: 99 }, (_, n) => file(`f${n}`)) },
    client,
  );
  call.mockReturnValue(new Promise(() => undefined));
  const large = new File([], 'large.mov');
  Object.defineProperty(large, 'size', { value: mostBytes + 1 });
  chips.addFiles([large]);
  chips.addPaths(['/a', '/b', '/c']);
  chips.drop({ paths: [], files: [], directories: ['photos'] });
  expect(chips.coming.map((one) => one.name)).toEqual(['a']);
  expect(chips.troubles.map((one) => one.text)).toEqual([
    'large.mov is too large: at most 50 MiB per file.',
    'A message takes at most 100 files.',
    expect.stringMatching(/^photos is a directory/),
  ]);
});

test('they are kept in their order, and what another window does is taken over', async () => {
  const chips = new Chips({ id: 's1', attachments: [file('a'), file('b'), file('c')] }, client);
  chips.remove('b');
  chips.told([file('a'), file('b'), file('c')]); // from before
  expect(names(chips)).toBe('a,c');
  await chips.flush();
  expect(saved()).toEqual(['a,c']);
  chips.told([file('a', { travels: 'embedded' }), file('c', { travels: 'link', copied: true })]); // the server's echo
  expect(chips.items.map((one) => one.travels)).toEqual(['embedded', 'link']);
  chips.told([file('c')]);
  expect(names(chips)).toBe('c');
  chips.sent(['c']);
  await chips.flush();
  expect([names(chips), saved()]).toEqual(['', ['a,c', '']]);
});

test('what cannot be kept is said, and tried again with the next', async () => {
  const chips = new Chips({ id: 's1', attachments: [file('a'), file('b')] }, client);
  patchSession.mockRejectedValueOnce(new ApiError('storage.failed'));
  chips.remove('a');
  await chips.flush();
  await settle();
  expect([chips.fault, chips.settled]).toEqual([
    'The data directory cannot be written at the moment.',
    false,
  ]);
  chips.remove('b');
  await chips.flush();
  await settle();
  expect([chips.fault, chips.settled, saved().at(-1)]).toEqual(['', true, '']);
});

test('what is under way outlives the composer', async () => {
  const session = { id: 's9', attachments: [] };
  const chips = chipsOf(session, client);
  let done: (result: object) => void = () => undefined;
  call.mockReturnValueOnce(new Promise((taken) => (done = taken)));
  chips.addPaths(['/a']);
  leaveChips(chips);
  expect(chipsOf(session, client)).toBe(chips);
  leaveChips(chips);
  done({ items: [file('a')], problems: [] });
  await chips.ended();
  await settle();
  expect(saved()).toEqual(['a']);
  expect(chipsOf(session, client)).not.toBe(chips);
});

test('what is on its way with a message is the same for who comes back, also after it has arrived', async () => {
  const session = { id: 's8', attachments: [file('a')] };
  const chips = chipsOf(session, client);
  let arrives: () => void = () => undefined;
  chips.sending = new Promise<void>((done) => (arrives = done));
  leaveChips(chips);
  await settle();
  expect(chipsOf(session, client)).toBe(chips);
  arrives();
  await settle();
  expect(chipsOf(session, client)).toBe(chips);
  leaveChips(chips);
  leaveChips(chips);
  await settle();
  expect(chipsOf(session, client)).not.toBe(chips);
});
