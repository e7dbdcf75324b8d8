import { expect, test } from 'vitest';
import type { Comparison } from '../api/records';
import { fakePage } from '../test/page';

const page = fakePage();

const comparison = (part: Partial<Comparison> = {}): Comparison => ({
  id: 'c1',
  title: 'Fix login',
  cwd: '/home/ada/app',
  repository: '/home/ada/app',
  commit: 'abc',
  createdAt: '2026-11-21T14:00:00.000Z',
  members: ['s1', 's2'].map((id) => ({ session: id, agent: 'mock', name: id, begun: true })),
  ...part,
});

test('comparisons are read with the lists, and follow their events', async () => {
  expect(page.comparisons.of('s1')).toBeUndefined();
  page.stored.comparisons = [comparison()];
  await page.begin();
  expect(page.comparisons.of('s2')?.title).toBe('Fix login');
  await page.tell('comparison.upsert', comparison({ taken: 's2' }), 2);
  expect(page.comparisons.of('s1')?.taken).toBe('s2');
  await page.tell('comparison.removed', { id: 'c1' }, 3);
  expect(page.comparisons.of('s1')).toBeUndefined();
  await page.tell('comparison.upsert', comparison({ id: 'c2' }), 4);
  await page.feed({ gen: 'g', seq: 5, reset: true, events: [] });
  await page.feed({ gen: 'g', seq: 6, events: [] });
  expect([...page.comparisons.byId.keys()]).toEqual(['c1']);
});

test('a list that cannot be read leaves what is known', async () => {
  await page.tell('comparison.upsert', comparison(), 2);
  page.refuse = (path) =>
    path.startsWith('/client/comparisons') ? { code: 'not_found', status: 404 } : undefined;
  await page.feed({ gen: 'g', seq: 3, reset: true, events: [] });
  await page.feed({ gen: 'g', seq: 4, events: [] });
  expect(page.comparisons.of('s1')?.id).toBe('c1');
});
