// @vitest-environment node
import { expect, test } from 'vitest';
import type { TallyRow, TurnSum } from '../api/records';
import '../strings/usage';
import { agentsOf, costText, daysOf, isSilent, levelOf, plusDays, tokensText, weekdayOf } from './usage';

function sum(total: number, more: Partial<TurnSum> = {}): TurnSum {
  const tokens = { input: 0, output: 0, cachedRead: 0, cachedWrite: 0, thought: 0, total };
  return { turns: 1, tookMs: 0, tokens, costs: [], ...more };
}

test('days follow each other over months, leap days and changes of clocks', () => {
  expect(daysOf('2028-02-28', '2028-03-01')).toEqual(['2028-02-28', '2028-02-29', '2028-03-01']);
  expect(daysOf('2026-03-28', '2026-03-30')).toHaveLength(3);
  expect(daysOf('2026-03-02', '2026-03-01')).toEqual([]);
  expect(plusDays('2026-01-01', -1)).toBe('2025-12-31');
  expect(weekdayOf('2026-11-30')).toBe(0); // a Monday
});

test('small days are seen beside large ones', () => {
  expect([0, 1, 100, 2500, 10_000].map((value) => levelOf(value, 10_000))).toEqual([0, 1, 1, 2, 4]);
  expect(levelOf(0, 0)).toBe(0);
});

test('an agent that tells nothing is told from one that took nothing', () => {
  expect(isSilent(sum(0, { untold: 1 }))).toBe(true);
  expect(isSilent(sum(0))).toBe(false);
  expect(tokensText(sum(0, { untold: 1 }), 0)).toBe('not told');
  expect(tokensText(sum(0), 0)).toBe('0');
});

test('money of different currencies is not added', () => {
  const costs = [
    { amount: 2, currency: 'EUR' },
    { amount: 3, currency: 'USD' },
  ];
  expect(costText(sum(1, { costs }))).toBe('€2.00 + $3.00');
  expect(costText(sum(1))).toBe('not told');
});

test('agents come with the most tokens first, in all days', () => {
  const day = (key: string, ...of: [string, number][]): TallyRow => ({
    key,
    sum: sum(0),
    agents: of.map(([agent, total]) => ({ agent, name: agent.toUpperCase(), sum: sum(total) })),
  });
  expect(agentsOf([day('1', ['a', 5], ['b', 4]), day('2', ['b', 3])])).toEqual([
    { agent: 'b', name: 'B', total: 7 },
    { agent: 'a', name: 'A', total: 5 },
  ]);
});
