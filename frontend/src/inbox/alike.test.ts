import { expect, test } from 'vitest';
import type { Request } from '../api/records';
import { request } from '../test/records';
import { alike } from './alike';

const ask = (id: string, more: Partial<Request> = {}) =>
  request({
    id,
    session: `s-${id}`,
    title: 'Run the tests',
    options: [{ id: 'once', name: 'Allow', kind: 'allow_once' }],
    tool: { toolCallId: id, kind: 'execute', rawInput: { command: 'go test', cwd: '/a' } },
    ...more,
  } as unknown as Partial<Request>);
const ids = (of: Request, all: readonly Request[]) => alike(of, all).map((one) => one.request.id);

test('the very same calls of one agent are alike, however their fields are ordered', () => {
  const first = ask('a');
  const turned = ask('b', {
    tool: { kind: 'execute', toolCallId: 'b', rawInput: { cwd: '/a', command: 'go test' } },
  } as unknown as Partial<Request>);
  expect(ids(first, [first, turned])).toEqual(['a', 'b']);
  expect(alike(first, [first, turned]).map(({ allow }) => allow.kind)).toEqual(['allow_once', 'allow_once']);
});

test.each<[string, Partial<Request>]>([
  [
    'another command',
    {
      tool: { toolCallId: 'b', kind: 'execute', rawInput: { command: 'go test ./x', cwd: '/a' } },
    } as unknown as Partial<Request>,
  ],
  [
    'another directory',
    {
      tool: { toolCallId: 'b', kind: 'execute', rawInput: { command: 'go test', cwd: '/b' } },
    } as unknown as Partial<Request>,
  ],
  ['another agent', { agent: 'Other' }],
  ['another title', { title: 'Run them' }],
  [
    'what cannot be allowed once',
    { options: [{ id: 'x', name: 'Always', kind: 'allow_always' }] } as unknown as Partial<Request>,
  ],
  ['a question', { kind: 'question' }],
])('%s is not alike', (_, more) => {
  const first = ask('a');
  expect(ids(first, [first, ask('b', more)])).toEqual([]);
});

test('what does not tell what it does is like no other', () => {
  for (const tool of [
    undefined,
    { toolCallId: 'a', kind: 'execute' },
    { toolCallId: 'a', rawInput: {}, content: [] },
  ]) {
    const first = ask('a', { tool } as unknown as Partial<Request>);
    expect(ids(first, [first, { ...first, id: 'b' }])).toEqual([]);
  }
  expect(alike(undefined, [ask('a'), ask('b')])).toEqual([]);
});
