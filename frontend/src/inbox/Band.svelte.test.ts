import { flushSync, mount, unmount } from 'svelte';
import { afterEach, beforeEach, expect, test, vi } from 'vitest';
import type { Request } from '../api/records';
import { client, inbox } from '../state/state';
import { request, session } from '../test/records';
import Band from './Band.svelte';

const options = [{ id: 'yes', name: 'Allow', kind: 'allow_once' }];
let ended: (() => void) | undefined;

function show(...ids: string[]) {
  const of = (id: string) => request({ id, title: id, options });
  const props = $state({
    session: session(),
    requests: ids.map(of) as readonly Request[],
    toolOf: () => undefined,
    leave: () => undefined,
  });
  const component = mount(Band, { target: document.body, props });
  flushSync();
  ended = () => void unmount(component);
  return { component, props };
}

beforeEach(() => {
  vi.useFakeTimers({ toFake: ['performance', 'setTimeout', 'clearTimeout'] });
  vi.spyOn(client, 'suggestRules').mockResolvedValue({ suggestions: [] });
});
afterEach(() => {
  ended?.();
  vi.useRealTimers();
  document.body.replaceChildren();
  inbox.later.clear();
});

const shown = () => document.querySelector<HTMLElement>('[data-testid=request]')?.dataset['request'];

test('a second click, meant for the request before, does not answer the one that has come into its place', () => {
  const answer = vi.spyOn(inbox, 'answer').mockResolvedValue(true);
  const { props } = show('r1', 'r2');
  vi.advanceTimersByTime(400);
  flushSync();
  const press = (detail: number) => {
    const init = { bubbles: true, cancelable: true, detail };
    document.querySelector('footer .theirs button')?.dispatchEvent(new MouseEvent('click', init));
  };
  press(1);
  expect(answer).toHaveBeenCalledExactlyOnceWith(expect.objectContaining({ id: 'r1' }), { optionId: 'yes' });
  props.requests = props.requests.slice(1);
  flushSync();
  expect(shown()).toBe('r2');
  press(2);
  press(1); // engines may start the click count again on another element
  expect(answer).toHaveBeenCalledTimes(1);
  vi.advanceTimersByTime(400);
  flushSync();
  press(1);
  expect(answer).toHaveBeenCalledTimes(2);
});

test('the request that is wanted is shown and has the focus, and no other where it waits no more', async () => {
  const { component } = show('r1', 'r2', 'r3');
  inbox.later.set('r2', true);
  await component.focus('r2');
  expect(shown()).toBe('r2');
  const focused = () => document.activeElement?.closest<HTMLElement>('[data-request]')?.dataset['request'];
  expect(focused()).toBe('r2');
  (document.activeElement as HTMLElement).blur();
  await component.focus('gone');
  expect(focused()).toBeUndefined();
  await component.focus();
  expect(focused()).toBe('r2');
});
