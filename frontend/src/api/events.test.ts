import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest';
import { decide, Feed, pace, start, type FeedHost, type FeedState } from './events';
import { ApiError } from './errors';
import { giveUpAfter } from './limit';
import type { Event, EventBatch } from './records';

const event = (seq: number): Event => ({ seq, at: '', type: 'x', data: seq });
const live: FeedState = { place: { gen: 'g', seq: 10 }, failures: 0 };

describe('what to do next', () => {
  test('the first answer says from where to follow, after the snapshots', () => {
    const [state, step] = decide(start, {
      kind: 'batch',
      batch: { gen: 'g', seq: 10, reset: true, events: [] },
    });
    expect(step).toEqual({ do: 'load', place: { gen: 'g', seq: 10 } });
    expect(state.place).toBeUndefined();
    expect(decide(state, { kind: 'loaded', place: { gen: 'g', seq: 10 } })).toEqual([live, { do: 'ask' }]);
  });

  test('events are applied, and the place moves on', () => {
    const [state, step] = decide(live, {
      kind: 'batch',
      batch: { gen: 'g', seq: 12, events: [event(11), event(12)] },
    });
    expect(state.place).toEqual({ gen: 'g', seq: 12 });
    expect(step.do === 'apply' && step.batch.events?.map((one) => one.seq)).toEqual([11, 12]);
  });

  test('events that were seen are left out', () => {
    const [, step] = decide(live, {
      kind: 'batch',
      batch: { gen: 'g', seq: 11, events: [event(9), event(11)] },
    });
    expect(step.do === 'apply' && step.batch.events?.map((one) => one.seq)).toEqual([11]);
  });

  test('an empty answer asks again', () => {
    expect(decide(live, { kind: 'batch', batch: { gen: 'g', seq: 10, events: [] } })).toEqual([
      live,
      { do: 'ask' },
    ]);
  });

  test.each<[string, EventBatch]>([
    ['a gap', { gen: 'g', seq: 900, reset: true, events: [] }],
    ['another start of the program', { gen: 'other', seq: 3, events: [event(3)] }],
  ])('%s loads everything anew', (_, batch) => {
    expect(decide(live, { kind: 'batch', batch })[1]).toEqual({
      do: 'load',
      place: { gen: batch.gen, seq: batch.seq },
    });
  });

  test('failures wait longer each time, up to ten seconds, and keep the place', () => {
    let state = live;
    const pauses: number[] = [];
    for (let n = 0; n < 8; n++) {
      const [next, step] = decide(state, n % 2 ? { kind: 'silent' } : { kind: 'failed', status: 502 });
      if (step.do === 'pause') pauses.push(step.ms);
      state = next;
    }
    expect(pauses).toEqual([250, 500, 1_000, 2_000, 4_000, 8_000, 10_000, 10_000]);
    expect(state.place).toEqual(live.place);
    const [after] = decide(state, { kind: 'batch', batch: { gen: 'g', seq: 10, events: [] } });
    expect(after.failures).toBe(0);
  });

  test('a refusal is not tried again', () => {
    expect(decide(live, { kind: 'failed', status: 401 })[1]).toEqual({ do: 'stop' });
  });
});

describe('the loop', () => {
  beforeEach(() => vi.useFakeTimers());
  afterEach(() => vi.useRealTimers());

  /** A host that gives the listed answers one after the other, and then none. */
  function host(answers: (EventBatch | Error)[]) {
    const links: string[] = [];
    const applied: number[] = [];
    const asked: unknown[] = [];
    const value: FeedHost = {
      ask: (place, _wait, signal) => {
        asked.push(place);
        const answer = answers.shift();
        if (answer instanceof Error) return Promise.reject(answer);
        if (answer) return Promise.resolve(answer);
        return new Promise((_, reject) =>
          signal.addEventListener('abort', () => reject(signal.reason as Error), { once: true }),
        );
      },
      load: vi.fn(() => Promise.resolve()),
      apply: (batch) => applied.push(...(batch.events ?? []).map((one) => one.seq)),
      link: (link) => links.push(link),
    };
    return { value, links, applied, asked };
  }

  const reset: EventBatch = { gen: 'g', seq: 10, reset: true, events: [] };

  test('loads, follows, and heals a gap', async () => {
    const { value, applied, asked } = host([
      reset,
      { gen: 'g', seq: 11, events: [event(11)] },
      { gen: 'g', seq: 50, reset: true, events: [] },
      { gen: 'g', seq: 51, events: [event(51)] },
    ]);
    const feed = new Feed(value);
    const ended = feed.run();
    await vi.advanceTimersByTimeAsync(0);
    expect(applied).toEqual([11, 51]);
    expect(value.load).toHaveBeenCalledTimes(2);
    expect(asked.at(-1)).toEqual({ gen: 'g', seq: 51 });
    feed.close();
    await ended;
  });

  test('a stream is asked for every 50 ms, a few answers at once, and so is what was too much for one', async () => {
    const many = (from: number, more: boolean): EventBatch[] =>
      Array.from({ length: 10 }, (_, n) => ({ gen: 'g', seq: from + n, events: [event(from + n)], more }));
    const { value, applied } = host([reset, ...many(11, false)]);
    const feed = new Feed(value);
    void feed.run();
    await vi.advanceTimersByTimeAsync(0);
    expect(applied).toEqual([11, 12, 13, 14]);
    await vi.advanceTimersByTimeAsync(pace - 1);
    expect(applied).toHaveLength(4);
    await vi.advanceTimersByTimeAsync(1);
    expect(applied).toHaveLength(5);
    await vi.advanceTimersByTimeAsync(5 * pace);
    expect(applied).toHaveLength(10);
    feed.close();

    const full = host([reset, ...many(11, true)]);
    const behind = new Feed(full.value);
    void behind.run();
    await vi.advanceTimersByTimeAsync(0);
    expect(full.applied).toHaveLength(10);
    behind.close();
  });

  test('what comes alone is asked for at once, however much comes', async () => {
    const { value, applied } = host([reset]);
    const waiting: ((batch: EventBatch) => void)[] = [];
    const first = value.ask.bind(value);
    value.ask = (place, wait, signal) =>
      place ? new Promise((done) => waiting.push(done)) : first(place, wait, signal);
    const feed = new Feed(value);
    void feed.run();
    for (let seq = 11; seq < 31; seq++) {
      await vi.advanceTimersByTimeAsync(pace);
      waiting.shift()?.({ gen: 'g', seq, events: [event(seq)] });
      await vi.advanceTimersByTimeAsync(0);
      expect(waiting).toHaveLength(1);
    }
    expect(applied).toHaveLength(20);
    feed.close();
  });

  test('gives up after 40 s, says so, and asks again from the same place', async () => {
    const { value, links, asked } = host([reset]);
    const feed = new Feed(value);
    void feed.run();
    await vi.advanceTimersByTimeAsync(giveUpAfter - 1);
    expect(links.at(-1)).toBe('live');
    await vi.advanceTimersByTimeAsync(1);
    expect(links.at(-1)).toBe('reconnecting');
    await vi.advanceTimersByTimeAsync(250);
    expect(asked).toEqual([undefined, { gen: 'g', seq: 10 }, { gen: 'g', seq: 10 }]);
    feed.close();
  });

  test('is woken out of a pause', async () => {
    const down = new ApiError('network');
    const { value, asked } = host([reset, down, down, down, down, down]);
    const feed = new Feed(value);
    void feed.run();
    await vi.advanceTimersByTimeAsync(250 + 500 + 1_000);
    const before = asked.length;
    feed.wake();
    await vi.advanceTimersByTimeAsync(0);
    expect(asked.length).toBe(before + 1);
    feed.close();
  });

  test('snapshots that fail are loaded again', async () => {
    const { value, links } = host([reset, reset]);
    vi.mocked(value.load).mockRejectedValueOnce(new ApiError('http', {}, 503));
    const feed = new Feed(value);
    void feed.run();
    await vi.advanceTimersByTimeAsync(300);
    expect(value.load).toHaveBeenCalledTimes(2);
    expect(links).toEqual(['reconnecting', 'live']);
    feed.close();
  });

  test('ends where it is not let in', async () => {
    const { value, links } = host([new ApiError('auth', {}, 401)]);
    await new Feed(value).run();
    expect(links).toEqual(['signed_out']);
  });
});
