import { beforeEach, afterEach, expect, test, vi } from 'vitest';
import { guardFor, KeyGuard, PressGuard, watchPlace } from './guard';

beforeEach(() => vi.useFakeTimers({ toFake: ['performance', 'setTimeout'] }));
afterEach(() => vi.useRealTimers());

test('keys do nothing for the first 400 ms', () => {
  const guard = new KeyGuard();
  expect(guard.allows(performance.now(), false)).toBe(false);
  guard.show(performance.now());
  vi.advanceTimersByTime(guardFor - 1);
  expect(guard.allows(performance.now(), false)).toBe(false);
  vi.advanceTimersByTime(1);
  expect(guard.allows(performance.now(), false)).toBe(true);
});

test('a key that is held down never counts', () => {
  const guard = new KeyGuard();
  guard.show(0);
  expect(guard.allows(10_000, true)).toBe(false);
});

test('another request begins anew', () => {
  const guard = new KeyGuard();
  guard.show(0);
  guard.show(5_000);
  expect(guard.allows(5_100, false)).toBe(false);
});

test('a press does nothing for the first 400 ms, and for as long after the answers have moved', () => {
  const guard = new PressGuard();
  const place = { left: 10, top: 20, width: 300, height: 40 };
  expect(guard.allows(10_000)).toBe(false);
  expect(guard.stands(place, 0)).toBe(true);
  expect(guard.allows(guardFor - 1)).toBe(false);
  expect(guard.allows(guardFor)).toBe(true);
  expect(guard.stands({ ...place, top: 20.5 }, 900)).toBe(false); // a part of a pixel is no move
  expect(guard.allows(900)).toBe(true);
  for (const [n, to] of [{ top: 90 }, { left: 40 }, { width: 200 }, { height: 80 }].entries()) {
    const now = 1_000 * (n + 1);
    expect(guard.stands({ ...place, ...to }, now), JSON.stringify(to)).toBe(true);
    expect(guard.allows(now + guardFor - 1)).toBe(false);
    expect(guard.allows(now + guardFor)).toBe(true);
  }
});

test('a move before the first report of a place counts', () => {
  let report: (entries: { intersectionRatio: number }[]) => void = () => undefined;
  class Observed {
    constructor(call: typeof report) {
      report = call;
    }
    observe() {
      // The reports come from the test.
    }
    disconnect() {
      // There is nothing to end.
    }
  }
  vi.stubGlobal('IntersectionObserver', Observed);
  vi.stubGlobal('ResizeObserver', Observed);
  vi.stubGlobal('document', { documentElement: { clientWidth: 300, clientHeight: 300 } });
  let top = 100;
  const element = {
    getBoundingClientRect: () => ({ left: 0, top, right: 200, bottom: top + 50 }),
  } as HTMLElement;
  const moved = vi.fn();
  const end = watchPlace(element, moved);
  report([{ intersectionRatio: 1 }]);
  expect(moved).toHaveBeenCalledTimes(0);
  end();

  watchPlace(element, moved);
  top = 40; // before the browser reports the place for the first time
  report([{ intersectionRatio: 0 }]);
  expect(moved).toHaveBeenCalledTimes(1);
  vi.unstubAllGlobals();
});
