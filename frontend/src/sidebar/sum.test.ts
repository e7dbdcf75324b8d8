import { expect, test } from 'vitest';
import { session } from '../test/records';
import { loudest, waitingIn } from './sum';

const works = session({ phase: 'working' });
const waits = session({ phase: 'waiting', waiting: 2 });
const idle = session();
const seen = session({ unread: true });
const failed = session({
  phase: 'closed',
  exit: { at: '2026-11-21T14:00:00.000Z', problem: 'agent.spawn_failed' },
});

test.each([
  [[idle, works, waits], 'waiting'],
  [[works, failed], 'failed'],
  [[seen, works], 'running'],
  [[idle, seen], 'unseen'],
  [[idle, idle], 'idle'],
])('the loudest of %# is told', (sessions, want) => {
  expect(loudest(sessions)).toBe(want);
});

test('requests of all members are counted', () => {
  expect(waitingIn([waits, idle, session({ waiting: 1 })])).toBe(3);
});
