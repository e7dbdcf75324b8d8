import { expect, test } from 'vitest';
import '../strings/compare';
import { session } from '../test/records';
import { stateOf } from './member';

const at = '2026-11-21T14:00:00.000Z';
const turns = 1;
const exit = { at, problem: 'agent.spawn_failed' };

test.each([
  ['starting', session({ phase: 'starting' }), { turns: 0 }, 'Starting', undefined],
  [
    'a tool that runs',
    session({ phase: 'working', doing: 'go test ./...' }),
    { turns },
    'Working',
    'go test ./...',
  ],
  ['a request', session({ phase: 'waiting', waiting: 1 }), { turns }, 'Waits for you', undefined],
  ['a stop', session({ phase: 'cancelling' }), { turns }, 'Stopping', undefined],
  ['an end', session(), { turns, stopReason: 'end_turn' }, 'Done', undefined],
  ['a stopped turn', session(), { turns, stopReason: 'cancelled' }, 'Stopped', 'Stopped'],
  [
    'an error',
    session(),
    { turns, stopReason: 'error', error: { code: -1, message: 'No quota is left' } },
    'Failed',
    'No quota is left',
  ],
  [
    'an agent that did not start',
    session({ phase: 'closed', exit }),
    { turns: 0 },
    'Failed',
    'Demo agent could not start: the system refused to run its program.',
  ],
  [
    'an agent that has ended in its turn',
    session({ phase: 'closed', exit: { at, problem: 'agent.exited', code: 3 } }),
    { turns, stopReason: 'agent_exited' },
    'Failed',
    'Demo agent ended with exit code 3.',
  ],
  [
    'a set-up',
    session({ phase: 'starting', setup: { state: 'running', waiting: true } }),
    { turns: 0 },
    'Sets up its worktree',
    undefined,
  ],
  [
    'a set-up that has failed',
    session({ phase: 'starting', setup: { state: 'failed', waiting: true, problem: 'No port is free' } }),
    { turns: 0 },
    'Worktree set-up failed',
    'No port is free',
  ],
  ['a held message', session({ queue: 1 }), { turns: 0 }, 'A message waits to be sent', undefined],
  ['nothing', session({ phase: 'closed' }), { turns: 0 }, 'Has not begun', undefined],
])('%s is told in words', (_, of, result, words, detail) => {
  expect(stateOf(of, result)).toMatchObject({ words, ...(detail === undefined ? {} : { detail }) });
});
