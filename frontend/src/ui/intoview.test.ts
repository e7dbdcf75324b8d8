// @vitest-environment node
import { expect, test } from 'vitest';
import { visibleRows } from './intoview';

test('of many rows those in view are mounted, of few all', () => {
  expect(visibleRows(150, 0, 600, 28)).toEqual({ from: 0, to: 150 });
  const { from, to } = visibleRows(5_000, 28_000, 600, 28);
  expect(from).toBeLessThanOrEqual(1_000);
  expect(to).toBeGreaterThanOrEqual(1_022);
  expect(to - from).toBeLessThan(80);
});

test('a list that has become shorter than where it stands shows its end', () => {
  expect(visibleRows(300, 139_000, 600, 28)).toEqual({ from: 280, to: 300 });
});
