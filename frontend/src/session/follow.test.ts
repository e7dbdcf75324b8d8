import { expect, test } from 'vitest';
import { following, gesture, jump, scrolled } from './follow';

test('growth of the content does not end following, however far the end is', () => {
  expect(scrolled(following, 4_000, 10_000).following).toBe(true);
});

test('a gesture upwards ends it at once, before anything has scrolled', () => {
  const up = gesture(following, 'up', 0);
  expect(up.following).toBe(false);
  // A fast stream must not pull the view back while the person still scrolls.
  expect(scrolled(up, 3, 16).following).toBe(false);
});

test('a gesture down to the end begins it again', () => {
  const away = scrolled(gesture(following, 'up', 0), 500, 50);
  expect(scrolled(gesture(away, 'down', 1_000), 200, 1_050).following).toBe(false);
  expect(scrolled(gesture(away, 'down', 1_000), 10, 1_100).following).toBe(true);
});

test('a dragged scroll bar does both', () => {
  const away = scrolled(gesture(following, 'either', 0), 300, 100);
  expect(away.following).toBe(false);
  expect(scrolled(away, 0, 200).following).toBe(true);
});

test('a scroll long after the last gesture is not the person’s', () => {
  const down = gesture(following, 'down', 0);
  expect(scrolled(down, 900, 5_000).following).toBe(true);
});

test('asking for the tail follows it', () => {
  expect(jump().following).toBe(true);
});
