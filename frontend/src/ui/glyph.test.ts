import { expect, test } from 'vitest';
import type { Session } from '../api/records';
import { session } from '../test/records';
import { statusOf, type Status } from './glyph';

const at = '2026-11-21T14:00:00.000Z';

test.each<[Partial<Session>, Status]>([
  [{ phase: 'starting' }, 'running'],
  [{ phase: 'working' }, 'running'],
  [{ phase: 'cancelling' }, 'running'],
  [{ phase: 'waiting' }, 'waiting'],
  [{ phase: 'working', waiting: 2 }, 'waiting'],
  [{ phase: 'starting', setup: { state: 'running', waiting: true } }, 'running'],
  [{ phase: 'starting', setup: { state: 'failed', waiting: true } }, 'waiting'],
  [{ phase: 'starting', setup: { state: 'stopped', waiting: true } }, 'waiting'],
  [{ phase: 'ready', setup: { state: 'failed' } }, 'idle'],
  [{ phase: 'ready' }, 'idle'],
  [{ phase: 'ready', queue: 1 }, 'queued'],
  [{ phase: 'ready', unread: true }, 'unseen'],
  [{ phase: 'closed' }, 'asleep'],
  [{ phase: 'closed', hibernated: true }, 'asleep'],
  [{ phase: 'closed', hibernated: true, unread: true }, 'unseen'],
  [{ phase: 'closed', exit: { at, code: 1, problem: 'agent.exited' } }, 'gone'],
  [{ phase: 'closed', exit: { at, problem: 'agent.not_installed' } }, 'failed'],
])('%j is %s', (part, status) => {
  expect(statusOf(session(part))).toBe(status);
});
