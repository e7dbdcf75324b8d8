import { expect, test } from 'vitest';
import type { Terminal } from '../api/records';
import { programName, programsOf, usual, type Choice, type Told } from './choice';

const ran = (terminalId: string, more: Partial<Terminal> = {}, text = ''): Told => ({
  entry: {
    id: `e-${terminalId}`,
    terminal: { terminalId, running: false, startedAt: '2026-01-01T00:00:00.000Z', ...more },
  },
  text,
});

test('programs that run stand before those that have ended, the newest first', () => {
  const list = programsOf([
    ran('a', { running: true }),
    { entry: { id: 'said' }, text: 'said' },
    ran('b'),
    ran('c', {}, 'out'),
    ran('d', { running: true }),
  ]);
  expect(list.map((one) => one.id)).toEqual(['d', 'a', 'c', 'b']);
  expect(list[2]).toMatchObject({ kind: 'program', text: 'out' });
});

test('those far back are left to the conversation, and none that runs is among them', () => {
  const many = Array.from({ length: 100 }, (_, n) => ran(`p${n}`, { running: n === 0 }));
  const list = programsOf(many);
  expect(list).toHaveLength(30);
  expect(list[0]?.id).toBe('p0');
});

test('a program is called by the first line of what was run', () => {
  const of = (command: string, ...args: string[]) =>
    programName(ran('t', { command, args }).entry.terminal as Terminal);
  expect(of('/bin/sh', '-c', 'make test\nmake lint')).toBe('make test');
  expect(of('go', 'test', './...')).toBe('go test ./...');
  expect(of('go', 'x'.repeat(200))).toBe(`go ${'x'.repeat(57)}…`);
  expect(programName(ran('t').entry.terminal as Terminal)).toBe('t');
});

test('what runs is shown by itself, the person’s own first', () => {
  const shell = (id: string, running: boolean) => ({ kind: 'shell', id, shell: { running } }) as Choice;
  const [idle] = programsOf([ran('idle')]);
  const [busy] = programsOf([ran('busy', { running: true })]);
  if (!idle || !busy) throw new Error('no programs');
  expect(usual([])).toBeUndefined();
  expect(usual([shell('s', false), idle])?.id).toBe('s');
  expect(usual([shell('s', false), idle, busy])?.id).toBe('busy');
  expect(usual([shell('s', false), shell('r', true), busy])?.id).toBe('r');
});
