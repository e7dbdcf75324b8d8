import { describe, expect, test } from 'vitest';
import type { Entry } from '../api/records';
import { plainItem } from '../state/transcript';
import { entry, session, tool, turn } from '../test/records';
import { workOf } from './working';

const running = session({ phase: 'working', turn: turn({ id: 't2', state: 'running' }) });
const calm = { gone: false, asks: false };

function now(...entries: Partial<Entry>[]) {
  return workOf(
    running,
    entries.map((one, n) => plainItem(entry(n + 1, { turn: 't2', ...one }))),
    calm,
  ).words;
}

describe('what a conversation does', () => {
  test('is waiting for the model until the first entry, and behind a tool that has ended', () => {
    expect(now()).toBe('Waiting for the model');
    expect(now({ kind: 'agent', turn: 't1', text: 'earlier' })).toBe('Waiting for the model');
    expect(now({ kind: 'user', text: 'go' })).toBe('Waiting for the model');
    expect(now({ kind: 'tool', tool: tool({ kind: 'read' }) })).toBe('Waiting for the model');
  });
  test('is the tool that runs, also where another has begun and ended since', () => {
    const command = { command: 'go test ./…' };
    const runs = tool({ kind: 'execute', status: 'in_progress', rawInput: command });
    expect(now({ kind: 'tool', tool: runs })).toBe('Running go test ./…');
    expect(now({ kind: 'tool', tool: runs }, { kind: 'tool', tool: tool({ toolCallId: 'c2' }) })).toBe(
      'Running go test ./…',
    );
    const edit = tool({ kind: 'edit', status: 'pending', locations: [{ path: '/home/ada/app/a.ts' }] });
    expect(now({ kind: 'tool', tool: edit })).toBe('Editing a.ts');
    expect(now({ kind: 'tool', tool: tool({ status: 'pending', title: 'Ask a colleague' }) })).toBe(
      'Ask a colleague',
    );
  });
  test('shows the beginning of a long command in one line', () => {
    const rawInput = { command: `echo\n${'a'.repeat(200)}` };
    const words = now({ kind: 'tool', tool: tool({ kind: 'execute', status: 'pending', rawInput }) });
    expect(words).toMatch(/^Running echo a+…$/);
    expect(words.length).toBeLessThan(140);
  });
  test('is thinking, or writing', () => {
    expect(now({ kind: 'thought', text: 'hm' })).toBe('Thinking');
    expect(now({ kind: 'thought', text: 'hm' }, { kind: 'agent', text: 'So' })).toBe('Writing');
    expect(now({ kind: 'agent', text: 'So' }, { kind: 'plan' })).toBe('Writing');
  });
  test('is waiting for the person, stopping, or not known, before all else', () => {
    const items = [plainItem(entry(1, { turn: 't2', kind: 'thought' }))];
    expect(workOf(running, items, { gone: false, asks: true }).words).toBe('Waiting for your answer');
    expect(workOf({ ...running, phase: 'cancelling' }, items, { gone: false, asks: true }).words).toBe(
      'Stopping',
    );
    expect(workOf(running, items, { gone: true, asks: true }).words).toBe('Deskhand is not answering');
  });
});
