import { expect, test } from 'vitest';
import type { AgentProcesses, ProcessList } from '../api/records';
import { rates } from '../state/usage';
import { membersOf, processesOf } from './usage';

const at = '2026-11-21T14:00:00.000Z';

const list = (items: Partial<AgentProcesses>[]): ProcessList => ({
  self: { pid: 1, startedAt: at },
  items: items.map((one) => ({ owner: 'session', pid: 2, startedAt: at, processes: [], ...one })),
});

const member = (pid: number, cpuSeconds: number, startedAt = at) => ({
  pid,
  cpuSeconds,
  startedAt,
  name: 'node',
  rssBytes: 1,
});

test('those of one conversation, whatever they are for', () => {
  const all = list([
    { session: 's1', pid: 2 },
    { session: 's2', pid: 3 },
    { session: 's1', pid: 4, owner: 'terminal' },
    { owner: 'watchdog', pid: 5 },
  ]);
  expect(processesOf(all, 's1').map((one) => one.pid)).toEqual([2, 4]);
});

test('each process has a rate of its own, and one with another one’s number has none', () => {
  const before = { at: 1_000, list: list([{ processes: [member(2, 1), member(3, 1), member(4, 5)] }]) };
  const now = {
    at: 3_000,
    list: list([
      { processes: [member(2, 2), member(3, 1), member(4, 6, '2026-11-21T15:00:00.000Z'), member(9, 4)] },
    ]),
  };
  expect([...rates(before, now, membersOf)]).toEqual([
    [2, 50],
    [3, 0],
  ]);
  expect(rates(undefined, now, membersOf).size).toBe(0);
});
