import { flushSync, mount, unmount } from 'svelte';
import { afterEach, expect, test, vi } from 'vitest';
import type { Exit, QueueItem, Session } from './api/records';
import Conversation from './Conversation.svelte';
import { editsOf } from './state/queue.svelte';
import { SessionView } from './state/session.svelte';
import { client, conversations, navigation, toasts, transcripts } from './state/state';
import { entry, event, queued, session } from './test/records';

let ended: (() => void) | undefined;

function open(part: Partial<Session> = {}, view = new SessionView('s1', client, () => undefined)) {
  const component = mount(Conversation, {
    target: document.body,
    props: {
      session: session(part),
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
  toasts.list = [];
  navigation.panel.open({ tab: 'changes' });
  navigation.panel.close();
  document.body.replaceChildren();
});

const fields = () => [...document.querySelectorAll('textarea')];
const queuedField = () => fields().find((one) => one.getAttribute('aria-label') === 'Queued message');

test('an edit of a queued message is there again, and in the composer when the last row is gone', async () => {
  const item: QueueItem = queued(0, { held: 'person' });
  vi.spyOn(client, 'queue').mockResolvedValue([item]);
  vi.spyOn(client, 'patchSession').mockResolvedValue(session());
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
  transcripts.queue('s1').apply([event('queue.removed', { id: item.id })]);
  await vi.waitFor(() => expect(fields().map((one) => one.value)).toEqual(['better']));
  expect(toasts.list.at(-1)?.text).toContain('is in the composer');
});

const exit: Exit = { at: '2026-11-21T14:00:00.000Z', code: 3, stderrTail: 'fatal: no more' };
const button = (name: string) =>
  [...document.querySelectorAll<HTMLButtonElement>('.exit button')].find(
    (one) => one.textContent.trim() === name,
  );

test('who has an agent that died goes on with a summary, once, or looks at what it wrote', async () => {
  vi.spyOn(client, 'queue').mockResolvedValue([]);
  const died = entry(2, { kind: 'divider', divider: { code: 'agent.exited', exit } });
  vi.spyOn(client, 'entries').mockResolvedValue({
    items: [entry(1, { kind: 'user', text: 'do it' }), died],
    turns: [],
    requests: [],
  });
  let done: (made: Session) => void = () => undefined;
  const handed = vi.spyOn(client, 'continueSession').mockReturnValue(new Promise((made) => (done = made)));
  const view = new SessionView('s1', client, () => undefined);
  await view.load();
  open({ phase: 'closed', exit }, view);
  await vi.waitFor(() => expect(button('Restart')).toBeDefined());
  expect(button('New conversation')).toBeUndefined();
  button('New conversation with summary')?.click();
  flushSync();
  button('New conversation with summary')?.click();
  expect(handed.mock.calls).toEqual([['s1', 'mock']]);
  button('Show log')?.click();
  expect([navigation.panel.shown, navigation.panel.ask]).toEqual([true, { tab: 'inspector', stderr: true }]);
  const shown = vi.spyOn(navigation, 'show').mockReturnValue(undefined);
  done(session({ id: 's2' }));
  await vi.waitFor(() => expect(shown).toHaveBeenCalledWith({ name: 'session', id: 's2' }));
  conversations.sessions.delete('s2');
});

test('an agent that never started has nothing to sum up: another conversation is begun', () => {
  vi.spyOn(client, 'queue').mockResolvedValue([]);
  open({ phase: 'closed', exit: { ...exit, problem: 'agent.not_installed' } });
  expect(button('New conversation with summary')).toBeUndefined();
  const shown = vi.spyOn(navigation, 'show').mockReturnValue(undefined);
  button('New conversation')?.click();
  expect(shown).toHaveBeenCalledWith({ name: 'new', cwd: '/home/ada/app', place: 'local' });
});
