import { flushSync, mount, unmount } from 'svelte';
import { afterEach, expect, test } from 'vitest';
import { plainItem } from '../../state/transcript';
import { weightOf } from '../window';
import { entry, tool } from '../../test/records';
import Tool from './Tool.svelte';

let ended: (() => void) | undefined;

afterEach(() => ended?.());

const edit = (lines: number) =>
  tool({
    kind: 'edit',
    status: 'failed',
    content: [{ type: 'diff', path: '/home/ada/app/a.go', oldText: '', newText: 'line\n'.repeat(lines) }],
  });

function show(lines: number, found = false, call = edit(lines)) {
  const props = $state({ tool: call, cwd: '/home/ada/app', live: false, found });
  const made = mount(Tool, { target: document.body, props });
  ended = () => void unmount(made);
  flushSync();
  return { weight: weightOf(plainItem(entry(1, { kind: 'tool', tool: call }))), props };
}

const elements = () => document.body.querySelectorAll('*').length;
const lines = () => document.querySelectorAll('.line').length;

test('an edit that failed is opened unasked, with as much of it as it is weighed to be', () => {
  const { weight } = show(500);
  expect(lines()).toBe(40);
  expect(elements()).toBeLessThanOrEqual(weight);
  document.querySelector<HTMLElement>('.more')?.click();
  flushSync();
  expect(lines()).toBe(500);
});

test('a short one is light', () => {
  const { weight } = show(2);
  expect(lines()).toBe(2);
  expect(elements()).toBeLessThanOrEqual(weight);
  expect(weight).toBeLessThan(100);
});

test('one that was looked for is shown further: what was found may stand there', () => {
  show(500, true);
  expect(lines()).toBe(400);
});

test('one that somebody has opened and reads stays as it is when it fails', () => {
  const { props } = show(500, false, { ...edit(500), status: 'in_progress' });
  expect(lines()).toBe(0);
  document.querySelector<HTMLElement>('.toggle')?.click();
  flushSync();
  expect(lines()).toBe(400);
  props.tool = edit(500);
  flushSync();
  expect(lines()).toBe(400);
});

test('the duration of a call is small, like the rest of its state', () => {
  show(
    1,
    false,
    tool({ status: 'completed', startedAt: '2026-01-01T00:00:00Z', endedAt: '2026-01-01T00:00:02Z' }),
  );
  expect(document.querySelector('.head .numbers')?.classList).toContain('small');
});
