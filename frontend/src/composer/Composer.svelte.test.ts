import { flushSync, mount, unmount } from 'svelte';
import { afterEach, beforeEach, expect, test, vi } from 'vitest';
import { ApiError } from '../api/errors';
import type { Sent, Session } from '../api/records';
import { client, toasts } from '../state/state';
import { session } from '../test/records';
import Composer from './Composer.svelte';

const save = vi.fn<(id: string, patch: object, last?: boolean) => Promise<Session>>();
let ended: (() => void) | undefined;

function open(id: string, part: Partial<Session> = {}) {
  leave();
  const component = mount(Composer, {
    target: document.body,
    props: { session: session({ id, ...part }), prompts: () => [], sent: () => undefined, active: false },
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
  vi.spyOn(client, 'patchSession').mockImplementation(save);
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
  vi.spyOn(client, 'prompt').mockReturnValue(new Promise((done) => (answer = done)));
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

/** Sends a message that stays under way until the test answers. */
function sending() {
  let answer!: (sent: Sent) => void;
  let fail!: (why: Error) => void;
  const prompt = vi.spyOn(client, 'prompt').mockReset();
  prompt.mockImplementation(
    () =>
      new Promise((done, failed) => {
        answer = done;
        fail = failed;
      }),
  );
  return {
    prompt,
    arrives: async () => {
      answer({} as Sent);
      await vi.advanceTimersByTimeAsync(0);
      flushSync();
    },
    fails: async () => {
      fail(new ApiError('session.gone', {}, 404));
      await vi.advanceTimersByTimeAsync(0);
      flushSync();
    },
  };
}

test('a message that is on its way when one comes back is sent once, and takes nothing of what is typed then', async () => {
  const { prompt, arrives } = sending();
  const file = { id: 'f1', filename: 'a.txt', mimeType: 'text/plain', size: 1 } as never;
  open('s4', { attachments: [file] });
  await vi.dynamicImportSettled();
  type('sent');
  await vi.advanceTimersByTimeAsync(1_000); // the draft is saved while it is typed
  press('Enter');
  leave();
  await vi.dynamicImportSettled();
  await vi.advanceTimersByTimeAsync(0);
  open('s4', { draft: 'sent', attachments: [file] });
  await vi.dynamicImportSettled();
  flushSync();
  press('Enter');
  type('sent, and more');
  await vi.advanceTimersByTimeAsync(1_000);
  await arrives();
  expect(prompt).toHaveBeenCalledExactlyOnceWith('s4', 'sent', 'queue', ['f1']);
  expect(field().value).toBe(', and more');
  await vi.advanceTimersByTimeAsync(1_000);
  const saved = save.mock.calls.map(([, patch]) => patch);
  expect(saved).not.toContainEqual({ draft: '' });
  expect(saved.findLast((one) => 'draft' in one)).toEqual({ draft: ', and more' });
  expect(saved.filter((one) => 'attachments' in one)).toEqual([]); // the server has removed them
  expect(document.querySelector('.shelf')).toBeNull();
  press('Enter');
  expect(prompt).toHaveBeenLastCalledWith('s4', ', and more', 'queue', []);
  await arrives();
});

test('what could not be sent after its conversation was left is said, and is there again', async () => {
  const { fails } = sending();
  open('s5');
  type('not sent');
  press('Enter');
  leave();
  await fails();
  expect(toasts.list.at(-1)?.tone).toBe('danger');
  open('s5');
  expect(field().value).toBe('not sent');
});

test('what cannot be saved is said, until it can', async () => {
  save.mockRejectedValue(new ApiError('request.invalid', {}, 422));
  open('s6');
  type('far too long');
  await vi.advanceTimersByTimeAsync(1_000);
  flushSync();
  expect(document.querySelector('[role=status]')?.textContent).toBe('Not saved: It is too long.');
  save.mockImplementation((id) => Promise.resolve(session({ id })));
  type('short');
  await vi.advanceTimersByTimeAsync(1_000);
  flushSync();
  expect(document.querySelector('[role=status]')?.textContent).toBe('');
});

test('Enter pressed twice sends nothing that is typed since', async () => {
  const { prompt, arrives } = sending();
  open('s7');
  type('plan');
  press('Enter');
  press('Enter');
  type('Delete the old ta');
  await vi.advanceTimersByTimeAsync(300);
  flushSync();
  expect(document.querySelector('[role=status]')?.textContent).toBe('Sending…');
  await arrives();
  expect(document.querySelector('[role=status]')?.textContent).toBe('');
  expect([prompt.mock.calls.length, field().value]).toEqual([1, 'Delete the old ta']);
});

test('what is sent while the message before it is on its way goes after it, as it was sent', async () => {
  const { prompt, arrives } = sending();
  open('s8');
  type('one');
  press('Enter');
  type('one two');
  press('Enter');
  await arrives();
  expect(prompt).toHaveBeenLastCalledWith('s8', 'two', 'queue', []);
  type('two three');
  press('Enter');
  type('two three, or rath');
  await arrives();
  expect([prompt.mock.calls.length, field().value]).toEqual([2, 'three, or rath']);
});

test('what was sent is not taken out of the draft again: where it is given back at once that would wipe it', async () => {
  const { arrives } = sending();
  open('s9');
  type('to be given back');
  await vi.advanceTimersByTimeAsync(1_000);
  save.mockClear();
  press('Enter');
  await arrives();
  await vi.advanceTimersByTimeAsync(5_000);
  expect([field().value, save.mock.calls]).toEqual(['', []]);
});
