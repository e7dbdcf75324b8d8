import { expect, test } from 'vitest';
import type { AgentProcesses, ProcessList } from '../api/records';
import { rates, rowsOf, sumOf } from './usage';

const startedAt = '2026-11-21T14:00:00.000Z';
const item = (pid: number, part: Partial<AgentProcesses> = {}): AgentProcesses => ({
  owner: 'session',
  pid,
  startedAt,
  processes: [{ pid, name: 'node', startedAt, cpuSeconds: 1, rssBytes: 10 }],
  ...part,
});
const list = (items: AgentProcesses[], self: Partial<ProcessList['self']> = {}): ProcessList => ({
  items,
  self: { pid: 1, startedAt, ...self },
});

test('agents and the app are summed apart, as the server does', () => {
  const all = list(
    [
      item(2, { rssBytes: 10 }),
      item(3, { owner: 'api', rssBytes: 20, processes: [] }),
      item(5, { owner: 'install', rssBytes: 40 }),
      item(4, { owner: 'watchdog', rssBytes: 5 }),
    ],
    { rssBytes: 7 },
  );
  expect(sumOf(all)).toEqual({ agents: 2, processes: 4, rssBytes: 70, selfRssBytes: 12 });
  expect(sumOf(list([item(2)]))).toEqual({ agents: 1, processes: 1, rssBytes: 0, selfRssBytes: 0 });
});

test('a rate is what was used between two samples, of one core', () => {
  const before = {
    at: 1_000,
    list: list([item(2, { cpuSeconds: 1 }), item(3, { cpuSeconds: 5 })], { cpuSeconds: 1 }),
  };
  const now = {
    at: 3_000,
    list: list(
      [
        item(2, { cpuSeconds: 2 }),
        item(3, { cpuSeconds: 9, startedAt: '2026-11-21T14:00:01.000Z' }), // another program with the same id
        item(4, { cpuSeconds: 3 }),
        item(5),
      ],
      { cpuSeconds: 1.5 },
    ),
  };
  expect([...rates(before, now)]).toEqual([
    [1, 25],
    [2, 50],
  ]);
  expect(rates(undefined, now).size).toBe(0);
  expect(rates(now, now).size).toBe(0);
});

test('ours stand last', () => {
  const all = list([item(4, { owner: 'watchdog' }), item(2), item(3, { owner: 'install' })]);
  expect(rowsOf(all).map((one) => one.pid)).toEqual([2, 3, 4]);
});
