import { afterEach, expect, test, vi } from 'vitest';
import { Client } from '../api/client';
import { ApiError } from '../api/errors';
import type { Frame, FramePage } from '../api/records';
import { everything, inSight, Wire } from './wire.svelte';
import { answering } from '../test/calls';

afterEach(() => vi.restoreAllMocks());

const frame = (seq: number): Frame => ({
  seq,
  at: '2026-11-21T14:00:00.000Z',
  generation: 1,
  dir: 'in',
  kind: 'notification',
  method: 'session/update',
  size: 10,
});

/** A fake journal that answers like /client/sessions/{id}/frames and holds calls that wait for more. */
function journal(length: number, fits: (seq: number) => boolean = () => true) {
  const client = new Client();
  const asked: URLSearchParams[] = [];
  let waiting: (() => void)[] = [];
  let end = length;
  const page = (query: URLSearchParams): FramePage => {
    const limit = Number(query.get('limit'));
    const one = (seq: number) => query.get('notes') === 'true' || fits(seq);
    const items: Frame[] = [];
    const after = query.get('after');
    if (after !== null) {
      let seq = Number(after);
      while (seq < end && items.length < limit) if (one(++seq)) items.push(frame(seq));
      return { items, next: seq, more: seq < end };
    }
    let seq = Number(query.get('before') ?? end + 1);
    // A call reads at most 1,000 frames.
    for (const stop = seq - 1000; seq > 1 && seq > stop && items.length < limit;)
      if (one(--seq)) items.push(frame(seq));
    return seq > 1 ? { items, next: seq, more: true } : { items };
  };
  answering(client, async (_, address, { end: given }) => {
    const query = new URLSearchParams(address.split('?')[1]);
    asked.push(query);
    if (query.has('wait') && Number(query.get('after')) >= end)
      await new Promise<void>((done, fail) => {
        waiting.push(done);
        given?.addEventListener('abort', () => fail(new Error('aborted')));
      });
    return page(query);
  });
  return {
    client,
    asked,
    grow: (by: number) => {
      end += by;
      for (const done of waiting.splice(0)) done();
      waiting = [];
    },
  };
}

const refused = new ApiError('session_not_found', {}, 404);
const ends = (wire: Wire) => [wire.items[0]?.seq, wire.items.at(-1)?.seq];

test('the end is read first, what comes is added to it, and what is older is read when it is wanted', async () => {
  const server = journal(2_000);
  const wire = new Wire(server.client, 's1', everything);
  void wire.open();
  await vi.waitFor(() => expect(wire.loaded).toBe(true));
  expect(ends(wire)).toEqual([1_501, 2_000]);
  server.grow(3);
  await vi.waitFor(() => expect(ends(wire)).toEqual([1_501, 2_003]));
  const before = wire.shift;
  await wire.loadOlder();
  expect(ends(wire)).toEqual([1_001, 2_003]);
  expect(wire.shift - before).toBe(500);
  await wire.loadOlder();
  await wire.loadOlder();
  expect(ends(wire)).toEqual([1, 2_003]);
  expect(wire.older).toBeUndefined();
  expect(new Set(wire.items.map((one) => one.seq)).size).toBe(2_003);
  wire.close();
});

test('a filter goes on looking until it has found a page, and then waits for what comes', async () => {
  const server = journal(5_000, (seq) => seq % 1_000 === 1);
  const wire = new Wire(server.client, 's1', { ...everything, text: 'x' });
  void wire.open();
  await vi.waitFor(() => expect(wire.loaded).toBe(true));
  expect(wire.items.map((one) => one.seq)).toEqual([1, 1_001, 2_001, 3_001, 4_001]);
  expect(server.asked.filter((query) => query.has('before')).length).toBeGreaterThan(2);
  server.grow(1); // 5,001
  await vi.waitFor(() => expect(wire.items.at(-1)?.seq).toBe(5_001));
  wire.close();
});

test('what is paused asks for nothing, and has all of it afterwards', async () => {
  const server = journal(10);
  const wire = new Wire(server.client, 's1', everything);
  void wire.open();
  await vi.waitFor(() => expect(server.asked.some((query) => query.has('wait'))).toBe(true));
  wire.pause(true);
  server.grow(1); // the answer that was under way
  await vi.waitFor(() => expect(wire.paused).toBe(true));
  const asked = server.asked.length;
  server.grow(5);
  expect(wire.items.at(-1)?.seq).toBe(10);
  expect(server.asked.length).toBe(asked);
  wire.pause(false);
  await vi.waitFor(() => expect(wire.items.at(-1)?.seq).toBe(16));
  wire.close();
});

test('what the server refuses is shown and not asked for again until a person wants it, who goes on from where it was', async () => {
  const server = journal(10);
  const answer = vi.mocked(server.client.call).getMockImplementation();
  vi.mocked(server.client.call).mockRejectedValueOnce(refused);
  const wire = new Wire(server.client, 's1', everything);
  await wire.open();
  expect(wire.error).toBeInstanceOf(Error);
  vi.mocked(server.client.call).mockImplementation(answer ?? (() => Promise.reject(new Error())));
  wire.again();
  await vi.waitFor(() => expect(ends(wire)).toEqual([1, 10]));
  wire.close();
});

test('trying again what is older asks for that, and no second one follows the end', async () => {
  const server = journal(2_000);
  const wire = new Wire(server.client, 's1', everything);
  void wire.open();
  const held = () => server.asked.filter((query) => query.has('wait')).length;
  await vi.waitFor(() => expect(held()).toBe(1));
  vi.mocked(server.client.call).mockRejectedValueOnce(new Error('no way'));
  await wire.loadOlder();
  expect(wire.error).toBeInstanceOf(Error);
  wire.again();
  wire.again(); // a person may press twice
  await vi.waitFor(() => expect(ends(wire)).toEqual([1_001, 2_000]));
  expect(wire.error).toBeUndefined();
  expect(held()).toBe(1);
  server.grow(2);
  await vi.waitFor(() => expect(ends(wire)).toEqual([1_001, 2_002]));
  expect(new Set(wire.items.map((one) => one.seq)).size).toBe(wire.items.length);
  wire.close();
});

test('opening that was refused is tried again once, however often it is asked for', async () => {
  const server = journal(10);
  vi.mocked(server.client.call).mockRejectedValueOnce(refused);
  const wire = new Wire(server.client, 's1', everything);
  await wire.open();
  expect(wire.error).toBeInstanceOf(Error);
  wire.again();
  wire.again();
  await vi.waitFor(() => expect(server.asked.filter((query) => query.has('wait')).length).toBe(1));
  expect(wire.items.map((one) => one.seq)).toEqual([1, 2, 3, 4, 5, 6, 7, 8, 9, 10]);
  wire.close();
});

test('a call that fails is shown, and made again from where it was: nothing is missed, and nothing there twice', async () => {
  const server = journal(10);
  const call = vi.mocked(server.client.call);
  call.mockRejectedValueOnce(new Error('no network'));
  const wire = new Wire(server.client, 's1', everything);
  void wire.open();
  await vi.waitFor(() => expect(wire.error).toBeInstanceOf(Error));
  await vi.waitFor(() => expect(server.asked.some((query) => query.has('wait'))).toBe(true));
  expect(wire.error).toBeUndefined();
  expect(ends(wire)).toEqual([1, 10]);
  call.mockRejectedValueOnce(new ApiError('internal', {}, 502));
  server.grow(1);
  await vi.waitFor(() => expect(wire.error).toBeInstanceOf(ApiError));
  server.grow(1);
  await vi.waitFor(() => expect(ends(wire)).toEqual([1, 12]));
  expect(wire.error).toBeUndefined();
  expect(wire.items).toHaveLength(12);
  wire.close();
});

test('what is older and could not be had comes as well when the server answers again', async () => {
  const server = journal(2_000);
  const wire = new Wire(server.client, 's1', everything);
  void wire.open();
  await vi.waitFor(() => expect(server.asked.some((query) => query.has('wait'))).toBe(true));
  const call = vi.mocked(server.client.call);
  call.mockRejectedValueOnce(new Error('no network'));
  await wire.loadOlder();
  call.mockRejectedValueOnce(new Error('no network'));
  server.grow(1); // and then the next call fails
  await vi.waitFor(() => expect(call.mock.calls.length).toBeGreaterThan(server.asked.length + 1));
  server.grow(1);
  await vi.waitFor(() => expect(ends(wire)).toEqual([1_001, 2_002]));
  expect(wire.error).toBeUndefined();
  wire.close();
});

test('of a hundred thousand rows those in sight are drawn', () => {
  expect(inSight(100_000, 24, 0, 480)).toEqual({ from: 0, to: 32 });
  expect(inSight(100_000, 24, 1_200_000, 480)).toEqual({ from: 49_988, to: 50_032 });
  expect(inSight(100_000, 24, 2_399_520, 480)).toEqual({ from: 99_968, to: 100_000 });
  expect(inSight(3, 24, 0, 480)).toEqual({ from: 0, to: 3 });
  expect(inSight(0, 24, 0, 480)).toEqual({ from: 0, to: 0 });
});
