import { expect, test } from 'vitest';
import { exitText, lastLines } from './exit';

const at = '2026-11-21T14:00:00.000Z';

test.each([
  [{ at, code: 3, problem: 'agent.exited' }, 'Ada ended with exit code 3.'],
  [{ at, signal: 'SIGKILL', problem: 'agent.exited' }, 'Ada was ended by SIGKILL.'],
  [
    { at, signal: 'SIGTERM', problem: 'agent.exited', params: { detail: 'It had closed its output.' } },
    'Ada was ended by SIGTERM. It had closed its output.',
  ],
  [{ at, code: 0 }, 'Ada ended with exit code 0.'],
  [{ at, problem: 'agent.exited' }, 'Ada ended.'],
  [{ at, problem: 'agent.not_installed' }, 'Ada could not start: its program was not found.'],
  [
    { at, code: 7, problem: 'agent.handshake_failed' },
    'Ada could not start: it did not answer as an agent should. It ended with exit code 7.',
  ],
  [
    { at, problem: 'agent.mode_lost', params: { option: 'Mode', value: 'Ask' } },
    'Ada was stopped: Mode is no longer “Ask”.',
  ],
  [
    { at, problem: 'agent.handshake_failed', params: { detail: 'Internal error: the quota is used up' } },
    'Ada could not start: it did not answer as an agent should. Internal error: the quota is used up',
  ],
  [{ at, problem: 'something.new' }, 'Ada ended.'],
])('%j', (exit, text) => {
  expect(exitText(exit, 'Ada')).toBe(text);
});

test('the last lines of stderr, and whether there are more', () => {
  expect(lastLines('1\n2\n3\n4\n5\n6\n')).toEqual({ text: '2\n3\n4\n5\n6', more: true });
  expect(lastLines('only\n')).toEqual({ text: 'only', more: false });
});
