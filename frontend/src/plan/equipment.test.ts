import { expect, test } from 'vitest';
import type { Given, McpServer, SkillEntry } from '../api/records';
import { serversOf, usageRows, useOf } from './equipment';

const server = (name: string, part: Partial<McpServer> = {}): McpServer => ({
  name,
  entry: {},
  enabled: true,
  approved: true,
  type: 'local',
  transport: 'stdio',
  hash: '',
  ...part,
});

test('the servers of a conversation, each with what became of it', () => {
  const given: Given = {
    generation: 1,
    skills: true,
    turns: 0,
    workedMs: 0,
    servers: [
      { name: 'deskhand', transport: 'stdio', own: true },
      { name: 'files', transport: 'stdio' },
      { name: 'gone', transport: 'http' },
    ],
  };
  const listed = [
    server('files'),
    server('later'),
    server('off', { enabled: false, approved: false }),
    server('strange', { approved: false }),
  ];
  expect(serversOf(given, listed).map((one) => `${one.name} ${one.use}`)).toEqual([
    'deskhand own',
    'files given',
    'later next',
    'off off',
    'strange approve',
    'gone changed',
  ]);
  expect(serversOf(undefined, [server('files')]).map((one) => one.use)).toEqual(['next']);
});

test('a skill that failed says so, whether it is approved or not', () => {
  const entry = (part: Partial<SkillEntry>): SkillEntry => ({
    name: 'a',
    entry: {},
    approved: true,
    state: 'resolved',
    skills: [],
    ...part,
  });
  expect(useOf(entry({}))).toBe('ready');
  expect(useOf(entry({ approved: false }))).toBe('approve');
  expect(useOf(entry({ state: 'unresolved' }))).toBe('unresolved');
  expect(useOf(entry({ approved: false, state: 'failed' }))).toBe('failed');
});

test('of a usage the figures that are known, in the order of reading', () => {
  expect(usageRows({ outputTokens: 2, totalTokens: 3, other: 1, inputTokens: 'many' })).toEqual([
    { kind: 'totalTokens', n: 3 },
    { kind: 'outputTokens', n: 2 },
  ]);
  expect(usageRows(undefined)).toEqual([]);
});
