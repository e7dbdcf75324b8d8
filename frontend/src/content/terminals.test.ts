import { expect, test } from 'vitest';
import type { Terminal } from '../api/records';
import { commandLine } from './terminals';

const ran = (command: string, ...args: string[]): Terminal => ({
  terminalId: 't',
  command,
  args,
  running: false,
  startedAt: '2026-01-01T00:00:00.000Z',
});

test.each([
  [ran('/bin/sh', '-c', 'echo a | wc'), 'echo a | wc'],
  [ran('bash', '-lc', 'ls -l'), 'ls -l'],
  [ran('bash', 'script.sh', 'a b'), "bash script.sh 'a b'"],
  [ran('C:\\Windows\\cmd.exe', '/c', 'dir'), "'C:\\Windows\\cmd.exe' /c dir"],
  [ran('npm', 'run', "it's"), "npm run 'it'\\''s'"],
  [ran(''), undefined],
])('%o is shown as %s', (terminal, line) => {
  expect(commandLine(terminal)).toBe(line);
});
