import { flushSync, mount, unmount } from 'svelte';
import { afterEach, expect, test, vi } from 'vitest';
import type { OutputPage } from '../api/records';
import Shown from '../test/Provided.svelte';
import type { Source } from './outputs';
import Terminal from './Terminal.svelte';

let ended: (() => void) | undefined;

afterEach(() => ended?.());

const lines = (from: number, to: number) =>
  Array.from({ length: to - from + 1 }, (_, n) => `line ${from + n}\n`).join('');

function show(running: boolean) {
  const whole = lines(1, 1_000);
  const tail = lines(951, 1_000);
  const page = vi.fn(() =>
    Promise.resolve<OutputPage>({
      text: lines(1, 400),
      offset: 0,
      previous: 0,
      size: whole.length,
      line: 1,
      lines: 1_000,
    }),
  );
  const source = { page, find: () => Promise.resolve({ items: [] }) } as Source;
  const props = $state({
    shown: Terminal,
    open: () => source,
    props: {
      program: {
        terminal: {
          terminalId: 't',
          running,
          startedAt: '2026-01-01T00:00:00Z',
          skipped: whole.length - tail.length,
        },
        text: tail,
        entry: 'e1',
      },
    },
  });
  const made = mount(Shown, { target: document.body, props });
  ended = () => void unmount(made);
  flushSync();
  return { page, props };
}

const printed = () =>
  [...document.querySelectorAll('pre')].map((part) => part.textContent.trim().split('\n'));

test('the output of a program that printed much shows its begin, its end, and how many lines are between', async () => {
  const { page } = show(false);
  await vi.waitFor(() => expect(document.querySelector('.more')?.textContent).toBe('… 920 lines between'));
  const [head, tail] = printed();
  expect([head?.[0], head?.at(-1), tail?.[0], tail?.at(-1)]).toEqual([
    'line 1',
    'line 30',
    'line 951',
    'line 1000',
  ]);
  expect(page).toHaveBeenCalledOnce();
});

test('while it runs nobody knows how many lines there are', async () => {
  const { page, props } = show(true);
  await vi.waitFor(() => expect(printed()[0]?.[0]).toBe('line 1'));
  expect(document.querySelector('.more')?.textContent).toMatch(/KB left out here/);
  props.props = { program: { ...props.props.program, text: `${props.props.program.text}more\n` } };
  flushSync();
  await vi.waitFor(() => expect(printed()[1]?.at(-1)).toBe('more'));
  expect(page).toHaveBeenCalledOnce();
  props.props.program.terminal.running = false;
  flushSync();
  await vi.waitFor(() => expect(document.querySelector('.more')?.textContent).toBe('… 919 lines between'));
  expect(page).toHaveBeenCalledTimes(2);
});
