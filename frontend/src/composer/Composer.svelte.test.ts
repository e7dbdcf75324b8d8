import { flushSync, mount, unmount } from 'svelte';
import { afterEach, beforeEach, expect, test, vi } from 'vitest';
import { app } from '../app.svelte';
import { ApiError } from '../api/errors';
import type { Sent, Session } from '../api/records';
import { session } from '../test/records';
import Composer from './Composer.svelte';

const save = vi.fn<(id: string, patch: object, last?: boolean) => Promise<Session>>();
let ended: (() => void) | undefined;

function open(id: string) {
  leave();
  const component = mount(Composer, {
    target: document.body,
    props: { session: session({ id }), prompts: () => [], sent: () => undefined, active: false },
  });
  flushSync();
  ended = () => void unmount(component);
}

function leave() {
  ended?.();
  ended = undefined;
}

beforeEach(() => {
  vi.useFakeTimers();
  save.mockReset().mockImplementation((id) => Promise.resolve(session({ id })));
  vi.spyOn(app.client, 'patchSession').mockImplementation(save);
});

afterEach(async () => {
  leave();
  await vi.advanceTimersByTimeAsync(1_000);
  document.body.replaceChildren();
  vi.useRealTimers();
});

const field = () => document.querySelector('textarea') as HTMLTextAreaElement;

function type(text: string) {
  field().value = text;
  field().dispatchEvent(new Event('input', { bubbles: true }));
  flushSync();
}

function press(key: string) {
  field().dispatchEvent(new KeyboardEvent('keydown', { key, code: key, bubbles: true, cancelable: true }));
}

test('what could not be saved is there again when its conversation is', async () => {
  save.mockRejectedValue(new ApiError('storage.moving', {}, 503));
  open('s1');
  type('not to be lost');
  open('s2');
  await vi.advanceTimersByTimeAsync(0);
  expect(save).toHaveBeenLastCalledWith('s1', { draft: 'not to be lost' }, false);
  expect(field().value).toBe('');
  save.mockImplementation((id) => Promise.resolve(session({ id })));
  open('s1');
  expect(field().value).toBe('not to be lost');
  await vi.advanceTimersByTimeAsync(1_000);
  expect(save).toHaveBeenCalledTimes(2);
});

test('what was sent as its conversation was left is not there again; what was typed since is', async () => {
  let answer!: (sent: Sent) => void;
  vi.spyOn(app.client, 'prompt').mockReturnValue(new Promise((done) => (answer = done)));
  save.mockRejectedValue(new ApiError('storage.moving', {}, 503));
  open('s3');
  type('sent');
  press('Enter');
  leave();
  await vi.advanceTimersByTimeAsync(0);
  open('s3');
  expect(field().value).toBe('sent');
  type('sent, and more');
  answer({} as Sent);
  await vi.advanceTimersByTimeAsync(0);
  flushSync();
  expect(field().value).toBe(', and more');
  save.mockImplementation((id) => Promise.resolve(session({ id })));
  await vi.advanceTimersByTimeAsync(1_000);
  type(', and still more');
  await vi.advanceTimersByTimeAsync(1_000);
  expect(save).toHaveBeenLastCalledWith('s3', { draft: ', and still more' }, false);
});
