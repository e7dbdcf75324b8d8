import { flushSync, mount, unmount } from 'svelte';
import { afterEach, beforeEach, expect, test } from 'vitest';
import type { AccountLimit } from '../api/records';
import { conversations, wallClock } from '../state/state';
import { session } from '../test/records';
import LimitChip from './LimitChip.svelte';
import LimitReset from './LimitReset.svelte';

let ended: (() => void) | undefined;
const now = new Date(2026, 10, 21, 14, 0).getTime();
const hour = 3_600_000;
const after = (hours: number) => new Date(now + hours * hour).toISOString();
/** A time of today as the page writes it. */
const clock = (hours: number) =>
  new Date(now + hours * hour).toLocaleTimeString(undefined, { hour: '2-digit', minute: '2-digit' });

beforeEach(() => (wallClock.now = now));
afterEach(() => {
  ended?.();
  conversations.sessions.delete('s1');
  wallClock.now = Date.now();
  document.body.replaceChildren();
});

function show(...limits: AccountLimit[]) {
  const props = $state({ limits });
  const component = mount(LimitChip, { target: document.body, props });
  ended = () => void unmount(component);
  flushSync();
  return props;
}

const chip = () => document.querySelector<HTMLElement>('[data-testid=limit]');
/** What is seen of the chip. */
const seen = () => {
  const copy = chip()?.cloneNode(true) as HTMLElement | undefined;
  for (const hidden of copy?.querySelectorAll('.visually-hidden') ?? []) hidden.remove();
  return copy?.textContent.replace(/\s+/g, ' ').trim();
};

test('a limit is shown from four fifths on', () => {
  const props = show({ type: 'five_hour', status: 'allowed', used: 0.79, resetsAt: after(0.5) });
  expect(seen()).toBeUndefined();
  props.limits = [{ type: 'five_hour', status: 'allowed', used: 0.8, resetsAt: after(0.5) }];
  flushSync();
  expect(seen()).toBe(`5-hour limit 80% · resets ${clock(0.5)}`);
  expect(chip()?.className).toContain('warn-text');
});

test('the tooltip has all limits, and so has what is read out', () => {
  show(
    { type: 'seven_day', used: 0.31, resetsAt: after(72) },
    { type: 'five_hour', status: 'allowed_warning', used: 0.86, resetsAt: after(0.5) },
    { type: 'seven_day_opus', status: 'allowed' },
  );
  const date = new Date(after(72)).toLocaleDateString(undefined, { month: 'short', day: 'numeric' });
  const lines = [
    `Weekly limit 31% · resets ${date} ${clock(72)}`,
    `5-hour limit 86% · resets ${clock(0.5)}`,
    'Weekly limit for Opus: not reached',
  ];
  expect(chip()?.title).toBe(lines.join('\n'));
  expect(seen()).toBe(lines[1]);
  const heard = [...(chip()?.querySelectorAll('.visually-hidden') ?? [])].map((one) => one.textContent);
  expect(heard).toEqual([lines[0], lines[2]]);
});

test('a refusal comes before everything else, and a warning needs no number', () => {
  const props = show(
    { type: 'five_hour', status: 'allowed', used: 1, resetsAt: after(1) },
    { type: 'seven_day', status: 'rejected', resetsAt: after(2) },
  );
  expect(seen()).toBe(`Weekly limit reached · resets ${clock(2)}`);
  expect(chip()?.className).toContain('danger-text');
  props.limits = [{ type: 'five_hour', status: 'allowed_warning' }];
  flushSync();
  expect(seen()).toBe('5-hour limit nearly reached');
  props.limits = [{ type: 'seven_day', status: 'allowed_warning', used: 0.37 }];
  flushSync();
  expect(seen()).toBe('Weekly limit 37%');
});

test('a limit that nobody knows has the name that the agent gives', () => {
  const props = show({ type: 'one_day_<b>x</b>', used: 0.9 });
  expect(seen()).toBe('Limit “one day <b>x</b>” 90%');
  props.limits = [{ used: 0.9 }];
  flushSync();
  expect(seen()).toBe('Account limit 90%');
});

test('a limit goes away with its reset, and the next one takes its place', () => {
  show(
    { type: 'five_hour', status: 'rejected', resetsAt: after(1) },
    { type: 'seven_day', used: 0.9, resetsAt: after(2) },
  );
  expect(seen()).toBe(`5-hour limit reached · resets ${clock(1)}`);
  wallClock.now = now + hour;
  flushSync();
  expect(seen()).toBe(`Weekly limit 90% · resets ${clock(2)}`);
  expect(chip()?.title).toBe(seen());
  wallClock.now = now + 2 * hour;
  flushSync();
  expect(seen()).toBeUndefined();
});

test('under a failed turn stands when the last of the limits that are used up resets', () => {
  conversations.sessions.set(
    's1',
    session({
      usage: {
        used: 1,
        size: 2,
        limits: [
          { type: 'seven_day', status: 'allowed_warning', used: 0.9, resetsAt: after(6) },
          { type: 'overage', status: 'rejected', resetsAt: after(2) },
          { type: 'five_hour', used: 1, resetsAt: after(1) },
        ],
      },
    }),
  );
  const component = mount(LimitReset, { target: document.body, props: { session: 's1' } });
  ended = () => void unmount(component);
  flushSync();
  expect(document.body.textContent).toBe(`Resets at ${clock(2)}`);
  wallClock.now = now + 2 * hour;
  flushSync();
  expect(document.body.textContent).toBe('');
});
