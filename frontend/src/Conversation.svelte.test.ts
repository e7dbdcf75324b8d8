import { flushSync, mount, unmount } from 'svelte';
import { afterEach, expect, test, vi } from 'vitest';
import type { QueueItem } from './api/records';
import { app } from './app.svelte';
import Conversation from './Conversation.svelte';
import { editsOf } from './composer/queue.svelte';
import { SessionView } from './session/session.svelte';
import { event, queued, session } from './test/records';

let ended: (() => void) | undefined;

function open() {
  const view = new SessionView('s1', app.client, () => undefined);
  const component = mount(Conversation, {
    target: document.body,
    props: {
      session: session(),
      view,
      at: undefined,
      active: false,
      close: undefined,
      menu: () => undefined,
    },
  });
  flushSync();
  ended = () => void unmount(component);
}

afterEach(() => {
  ended?.();
  editsOf('s1').clear();
  app.toasts = [];
  document.body.replaceChildren();
});

const fields = () => [...document.querySelectorAll('textarea')];
const queuedField = () => fields().find((one) => one.getAttribute('aria-label') === 'Queued message');

test('an edit of a queued message is there again, and in the composer when the last row is gone', async () => {
  const item: QueueItem = queued(0, { held: 'person' });
  vi.spyOn(app.client, 'queue').mockResolvedValue([item]);
  vi.spyOn(app.client, 'patchSession').mockResolvedValue(session());
  open();
  await vi.waitFor(() => expect(document.querySelector('[data-part=text]')).not.toBeNull());
  document.querySelector<HTMLElement>('[data-part=text]')?.click();
  await vi.waitFor(() => expect(queuedField()).toBeDefined());
  const field = queuedField() as HTMLTextAreaElement;
  field.value = 'better';
  field.dispatchEvent(new Event('input', { bubbles: true }));
  flushSync();
  ended?.();
  open();
  await vi.waitFor(() => expect(queuedField()?.value).toBe('better'));
  app.queue('s1').apply([event('queue.removed', { id: item.id })]);
  await vi.waitFor(() => expect(fields().map((one) => one.value)).toEqual(['better']));
  expect(app.toasts.at(-1)?.text).toContain('is in the composer');
});
