import { afterEach, beforeEach, expect, test, vi } from 'vitest';
import type { Session } from '../api/records';
import { soundOf, tell, type Surroundings } from './sounds';

const session = (more: Partial<Session>) => ({ id: 's', waiting: 0, updatedAt: 'then', ...more }) as Session;
const setup: NonNullable<Session['setup']> = { state: 'failed', waiting: true };
const subagent = { parent: 'p' };
const turn = { id: 't' } as NonNullable<Session['turn']>;

beforeEach(() => {
  vi.useFakeTimers({ now: 1_000_000 });
  localStorage.clear();
});
afterEach(() => vi.useRealTimers());

/** A page, which may look at the conversation; now is its newest state. */
function page(now: Session, more: Partial<Surroundings> = {}) {
  const play = vi.fn(() => Promise.resolve());
  const around: Surroundings = { on: () => true, looksAt: () => false, now: () => now, play, ...more };
  return { play, around };
}

test.each([
  ['a request', session({ turn }), session({ turn, waiting: 1 }), 'waits'],
  ['a second request', session({ turn, waiting: 1 }), session({ turn, waiting: 2 }), 'waits'],
  ['the end of a turn', session({ turn }), session({}), 'ended'],
  ['the end of a subagent', session({ turn, subagent }), session({ subagent }), undefined],
  ['a request of a subagent', session({ turn, subagent }), session({ turn, subagent, waiting: 1 }), 'waits'],
  ['a set-up that fails', session({ turn }), session({ turn, setup }), 'waits'],
  ['words beside a set-up that has failed', session({ turn, setup }), session({ turn, setup }), undefined],
  ['a set-up that nobody waits for', session({}), session({ setup: { state: 'failed' } }), undefined],
  ['an answer', session({ turn, waiting: 1 }), session({ turn }), undefined],
  ['words of a turn', session({ turn }), session({ turn, updatedAt: 'now' }), undefined],
  ['the begin of a turn', session({}), session({ turn }), undefined],
  ['a conversation that the page did not know', undefined, session({ waiting: 1 }), undefined],
])('%s', (_, before, after, want) => {
  expect(soundOf(before, after)).toBe(want);
});

test('a sound is played once, by one of several pages', async () => {
  const now = session({ waiting: 1 });
  const pages = [page(now), page(now)];
  for (const { around } of pages) tell('waits', now, around);
  await vi.advanceTimersByTimeAsync(1_000);
  expect(pages.map(({ play }) => play.mock.calls.length)).toEqual([1, 0]);
  expect(pages[0]?.play).toHaveBeenCalledWith('waits');
});

test.each([
  ['who looks at it', {}, { looksAt: () => true }],
  ['who has not switched it on', {}, { on: () => false }],
])('nobody hears of a conversation %s', async (_, more, around) => {
  const now = session({ waiting: 1, ...more });
  const one = page(now, around);
  tell('waits', now, one.around);
  await vi.advanceTimersByTimeAsync(1_000);
  expect(one.play).not.toHaveBeenCalled();
});

test('a page in the background is quiet while another one is looked at', async () => {
  const now = session({ waiting: 1 });
  const [away, here] = [page(now), page(now, { looksAt: () => true })];
  tell('waits', now, away.around);
  tell('waits', now, here.around);
  await vi.advanceTimersByTimeAsync(1_000);
  expect(away.play).not.toHaveBeenCalled();
});

test('what is over by then makes no sound: an answered request, a queue that goes on', async () => {
  const answered = page(session({}));
  tell('waits', session({ waiting: 1 }), answered.around);
  const goesOn = page(session({ turn }));
  tell('ended', session({}), goesOn.around);
  await vi.advanceTimersByTimeAsync(1_000);
  expect([answered.play, goesOn.play].map(({ mock }) => mock.calls.length)).toEqual([0, 0]);
});

test('many conversations that end together make one sound, and later ones another', async () => {
  const one = page(session({}));
  for (const id of ['a', 'b', 'c']) tell('ended', session({ id }), one.around);
  await vi.advanceTimersByTimeAsync(1_000);
  expect(one.play).toHaveBeenCalledTimes(1);
  await vi.advanceTimersByTimeAsync(5_000);
  tell('ended', session({ id: 'd' }), one.around);
  await vi.advanceTimersByTimeAsync(1_000);
  expect(one.play).toHaveBeenCalledTimes(2);
});
