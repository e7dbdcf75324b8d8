import { flushSync, mount, unmount } from 'svelte';
import { afterEach, beforeEach, expect, test, vi } from 'vitest';
import type { StartMode as Answer } from '../api/records';
import { client } from '../state/state';
import StartMode from './StartMode.svelte';

const answer = (mode: string): Answer => ({
  asks: 'asks',
  chosen: { agent: {}, directory: {} },
  mode,
  model: '',
  usual: 'default',
  models: [],
  modes: [
    { value: 'default', name: 'Manual', asks: 'asks' },
    { value: 'auto', name: 'Auto', asks: 'decides' },
  ],
});

let asked: ReturnType<typeof vi.spyOn>;
let view: ReturnType<typeof mount> | undefined;

beforeEach(() => {
  vi.useFakeTimers();
  asked = vi.spyOn(client, 'startMode').mockImplementation(() => Promise.resolve(answer('default')));
});

afterEach(() => {
  if (view) void unmount(view);
  view = undefined;
  vi.useRealTimers();
  vi.restoreAllMocks();
  document.body.replaceChildren();
});

async function passes(millis: number) {
  flushSync();
  await vi.advanceTimersByTimeAsync(millis);
  flushSync();
}

test('the mode is asked for once, and again when the directory changes', async () => {
  const props = $state({ agent: 'ada', cwd: '/one', label: 'Begins in' });
  view = mount(StartMode, { target: document.body, props });
  await passes(5000);
  expect(asked).toHaveBeenCalledTimes(1);
  expect(document.body.textContent).toContain('Manual');
  props.cwd = '/two';
  await passes(5000);
  expect(asked).toHaveBeenCalledTimes(2);
});
