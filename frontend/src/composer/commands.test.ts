import { describe, expect, test } from 'vitest';
import { accept, complete, without, type Own } from './commands';

const commands = [
  { name: 'plan', description: 'Makes a plan' },
  { name: 'explain', hint: '<file>' },
  { name: 'replan' },
];
const names = (text: string, caret = text.length) =>
  complete(text, caret, commands)?.matches.map((one) => one.name);

describe('completion', () => {
  test('begins with a slash at the start', () => {
    expect(names('/')).toEqual(['plan', 'explain', 'replan']);
    expect(names('do /')).toBeUndefined();
    expect(names('')).toBeUndefined();
  });

  test('puts what begins so before what holds it', () => {
    expect(names('/PLAN')).toEqual(['plan', 'replan']);
    expect(names('/pl')).toEqual(['plan', 'explain', 'replan']);
  });

  test('is about the first word only, as far as the caret', () => {
    expect(names('/plan the work')).toBeUndefined();
    expect(names('/pl the work', 2)).toEqual(['plan', 'explain', 'replan']);
    expect(names('/plan', 0)).toBeUndefined();
  });

  test('ends when nothing fits or nothing is left to complete', () => {
    expect(names('/xyz')).toBeUndefined();
    expect(names('/replan')).toBeUndefined();
  });
});

describe("Deskhand's own", () => {
  const own = (name: string, title: string): Own => ({
    id: name,
    name,
    title,
    keys: '',
    run: () => undefined,
  });
  const ours = [
    own('archive', 'Archive'),
    own('export-md', 'Export as Markdown'),
    own('plan', 'Plan and context'),
  ];
  const found = (text: string) => complete(text, text.length, commands, () => ours);
  const ownOf = (text: string) => found(text)?.own.map((one) => one.name);

  test("stand behind the agent's, in a part of their own", () => {
    expect(found('/pl')?.matches.map((one) => one.name)).toEqual(['plan', 'explain', 'replan']);
    expect(ownOf('/pl')).toEqual(['plan']);
  });

  test('are found by each word, and by nothing within one', () => {
    expect(ownOf('/md')).toEqual(['export-md']);
    expect(ownOf('/mark')).toEqual(['export-md']);
    expect(ownOf('/context')).toEqual(['plan']);
    expect(found('/chive')).toBeUndefined();
    expect(found('/etc/passwd')).toBeUndefined();
  });

  test('are offered to the last letter, so that Enter sends none of them', () => {
    expect(ownOf('/archive')).toEqual(['archive']);
  });

  test("give way to the agent's of the same name", () => {
    expect(complete('/explain', 8, commands, () => [own('explain', 'Explain')])).toBeUndefined();
  });

  test('leave what was typed after them', () => {
    expect(without('/arch the rest')).toBe('the rest');
    expect(without('/arch')).toBe('');
  });
});

test('taking a command keeps what was typed after it', () => {
  expect(accept('/ex main.ts', { name: 'explain' })).toEqual({ text: '/explain main.ts', caret: 9 });
  expect(accept('/', { name: 'plan' })).toEqual({ text: '/plan ', caret: 6 });
});
