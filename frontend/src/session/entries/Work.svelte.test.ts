import { createRawSnippet, flushSync, mount, unmount } from 'svelte';
import { afterEach, expect, test } from 'vitest';
import type { ToolCall } from '../../api/records';
import { plainItem, type Item } from '../../state/transcript';
import { entry, tool } from '../../test/records';
import Work from './Work.svelte';

let ended: (() => void) | undefined;

afterEach(() => ended?.());

const call = (seq: number, status: ToolCall['status'] = 'completed') =>
  plainItem(entry(seq, { kind: 'tool', tool: tool({ toolCallId: `c${seq}`, kind: 'read', status }) }));
const calls = (count: number) => Array.from({ length: count }, (_, n) => call(n + 1));

function show(items: Item[], part = {}) {
  const props = $state({
    items,
    waits: (_: Item) => false,
    found: undefined as string | undefined,
    live: false,
    last: true,
    follows: true,
    entry: createRawSnippet((item: () => Item) => ({
      render: () => `<p><button aria-expanded="false">${item().id}</button></p>`,
    })),
    ...part,
  });
  const made = mount(Work, { target: document.body, props });
  ended = () => void unmount(made);
  flushSync();
  return props;
}

const shown = () => [...document.querySelectorAll('p')].map((row) => row.textContent);
const words = () => document.querySelector('.head')?.textContent.trim();
const click = (selector: string) => {
  document.querySelector<HTMLElement>(selector)?.click();
  flushSync();
};

test('a call alone has no head', () => {
  show(calls(1));
  expect([words(), shown()]).toEqual([undefined, ['e1']]);
});

test('while a run goes on its newest three are visible, and it folds when the answer goes on', () => {
  const props = show(calls(5), { live: true });
  expect(shown()).toEqual(['e3', 'e4', 'e5']);
  expect(document.querySelector('.earlier')?.textContent).toBe('… 2 earlier steps');
  props.last = false;
  flushSync();
  expect([words(), shown()]).toEqual(['Read 5 files', []]);
});

test('somebody who reads further up, or has opened an entry, is not folded away', () => {
  const props = show(calls(5), { live: true, follows: false });
  props.live = false;
  flushSync();
  expect(shown()).toEqual(['e3', 'e4', 'e5']);
  props.follows = true;
  flushSync();
  expect(shown()).toEqual([]);

  ended?.();
  const other = show(calls(5), { live: true });
  click('p button');
  other.live = false;
  flushSync();
  expect(shown()).toEqual(['e3', 'e4', 'e5']);
});

test("the person's choice wins", () => {
  const props = show(calls(5), { live: true });
  click('.earlier');
  expect(shown().length).toBe(5);
  props.last = false;
  flushSync();
  expect(shown().length).toBe(5);
  click('.toggle');
  expect(shown()).toEqual([]);
});

test('what failed or waits for a person is visible in a folded run', () => {
  const items = [call(1), call(2, 'failed'), call(3), call(4, 'in_progress')];
  show(items, { waits: (item: Item) => item.id === 'e3' });
  expect(shown()).toEqual(['e2', 'e3']);
  expect(words()).toMatch(/1 failed/);
  click('.toggle');
  expect(shown()).toEqual(['e1', 'e2', 'e3', 'e4']);
  click('.toggle');
  expect(shown()).toEqual(['e3']);
});

test('a call that is at work beyond the end of its run stays visible while the turn goes on', () => {
  const props = show([call(1, 'in_progress'), call(2)], { live: true, last: false });
  expect(shown()).toEqual(['e1']);
  props.live = false;
  flushSync();
  expect(shown()).toEqual([]);
});

test('an entry that was looked for opens the run, even one that somebody has folded', () => {
  const props = show(calls(90));
  click('.toggle');
  expect(shown()).toEqual(
    calls(90)
      .slice(50)
      .map(({ id }) => id),
  );
  click('.earlier');
  expect(shown().length).toBe(80);
  click('.toggle');
  props.found = 'e3';
  flushSync();
  expect(shown().length).toBe(88);
  props.found = undefined;
  flushSync();
  expect(shown()).toEqual([]);
});

/** A run with two subagents at the same time, whose calls come in turns. */
function withSubagents(status: ToolCall['status']) {
  const of = (seq: number, part: Partial<ToolCall>) =>
    plainItem(entry(seq, { kind: 'tool', tool: tool({ toolCallId: `c${seq}`, kind: 'read', ...part }) }));
  return [
    of(1, { kind: 'think', title: 'Read the tests', status }),
    of(2, { kind: 'think', title: 'Read the docs', status }),
    of(3, { parent: 'c1' }),
    of(4, { parent: 'c2' }),
    of(5, { parent: 'c1' }),
    of(6, { parent: 'c5', status: 'failed' }),
    of(7, {}),
  ];
}
const heads = () =>
  [...document.querySelectorAll('.head')].map(({ textContent }) => textContent.replace(/\s+/g, ' ').trim());

test('each subagent has a row with its own calls, of which the newest are visible while it is at work', () => {
  const props = show(withSubagents('in_progress'), { live: true });
  expect(heads()).toEqual([
    'Read 4 files, ran 3 subagents 1 failed',
    'Read the tests Read 2 files, ran 1 subagent running',
    'Read the docs Read 1 file running',
  ]);
  expect(shown()).toEqual(['e3', 'e5', 'e6', 'e4', 'e7']);
  props.items = withSubagents('completed');
  props.live = props.last = false;
  flushSync();
  expect(shown()).toEqual(['e6']); // a failed one stays in sight

  click('.toggle');
  expect(heads().slice(1)).toEqual([
    'Read the tests Read 2 files, ran 1 subagent 1 failed',
    'Read the docs Read 1 file',
  ]);
  expect(shown()).toEqual(['e7']);
  (document.querySelectorAll('.toggle')[1] as HTMLElement).click();
  flushSync();
  expect(shown()).toEqual(['e1', 'e3', 'e5', 'e6', 'e7']);
});

test('what a subagent waits for is visible, and what was looked for in it opens it', () => {
  const props = show(withSubagents('completed'), { waits: (item: Item) => item.id === 'e4' });
  click('.toggle');
  expect(shown()).toEqual(['e4', 'e7']);
  props.found = 'e3';
  flushSync();
  expect(shown()).toEqual(['e1', 'e3', 'e5', 'e6', 'e4', 'e7']);
});
