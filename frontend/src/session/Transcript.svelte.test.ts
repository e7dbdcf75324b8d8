import { createRawSnippet, flushSync, mount, unmount } from 'svelte';
import { afterEach, expect, test, vi } from 'vitest';
import type { Client } from '../api/client';
import type { Entry } from '../api/records';
import { client } from '../state/state';
import { answering } from '../test/calls';
import { entry, session } from '../test/records';
import { toPrompt } from './prompts';
import { SessionView } from '../state/session.svelte';
import Transcript from './Transcript.svelte';

// jsdom lays nothing out, so positions are tested in a browser.

let ended: (() => void) | undefined;

afterEach(() => {
  ended?.();
  document.body.replaceChildren();
});

async function show(items: Entry[], preface: (text: string) => void = () => undefined) {
  const entries = () => Promise.resolve({ items, turns: [], requests: [] });
  const view = new SessionView('s1', { entries } as unknown as Client, () => undefined);
  await view.load();
  const nothing = () => undefined;
  const transcript = mount(Transcript, {
    target: document.body,
    props: {
      view,
      session: session(),
      requests: new Map(),
      now: 0,
      ways: {
        restart: nothing,
        say: nothing,
        login: nothing,
        handOver: () => Promise.resolve(),
        fresh: nothing,
        log: nothing,
        preface,
      },
      empty: createRawSnippet(() => ({ render: () => '<p></p>' })),
    },
  });
  ended = () => void unmount(transcript);
  flushSync();
  return { transcript, view };
}

const prompts = () => [...document.querySelectorAll('[data-prompt]')].map((one) => one.textContent.trim());

test('keys lead to the prompt before and after, however much of a turn stands between', async () => {
  const notice = (seq: number) => entry(seq, { kind: 'notice', notice: { severity: 'info', title: 'Hm' } });
  const long = (from: number) => Array.from({ length: 399 }, (_, n) => notice(from + n));
  const said = (seq: number, text: string) => entry(seq, { kind: 'user', text });
  const { transcript } = await show([said(1, 'First'), ...long(2), said(401, 'Second'), ...long(402)]);
  expect(prompts()).toEqual([]);
  await toPrompt(transcript, -1);
  flushSync();
  expect(prompts()).toEqual(['Second']);
  await transcript.reveal(1, 'place');
  flushSync();
  expect(prompts()).toEqual(['First']);
  await toPrompt(transcript, 1);
  flushSync();
  expect(prompts()).toEqual(['Second']);
  await transcript.reveal(700, 'place');
  await toPrompt(transcript, 1); // no prompt is left, so the view goes to the end
  flushSync();
  expect(document.querySelector('[data-key=e800]')).not.toBeNull();
});

test('where the agent has lost what was said, a summary of it can be put into the message', async () => {
  const asked = answering(client, () => ({ text: 'You have not seen it.' }));
  const lost = (seq: number) => entry(seq, { kind: 'divider', divider: { code: 'session.fresh' } });
  const preface = vi.fn<(text: string) => void>();
  await show(
    [
      entry(1, { kind: 'user', text: 'Which colour?' }),
      lost(2),
      entry(3, { kind: 'user', text: 'And now?' }),
      lost(4),
    ],
    preface,
  );
  await vi.waitFor(() => expect(document.querySelector('[data-key=e4] button')).not.toBeNull());
  expect(document.querySelectorAll('[data-row=divider] button').length).toBe(1);
  document.querySelector<HTMLElement>('[data-key=e4] button')?.click();
  await vi.waitFor(() => expect(preface).toHaveBeenCalledWith('You have not seen it.'));
  expect(asked.mock.calls.map(([route]) => route)).toEqual(['GET /client/sessions/{id}/summary']);
});

test('the view knows where the mounted part ends while somebody reads, and no longer than that', async () => {
  const { transcript, view } = await show(
    Array.from({ length: 800 }, (_, n) => entry(n + 1, { text: 'Hm' })),
  );
  expect(view.reading).toBeUndefined();
  await transcript.reveal(100, 'place');
  flushSync();
  const rows = [...document.querySelectorAll<HTMLElement>('[data-key]')].map((one) => one.dataset['key']);
  expect(rows).toContain('e100');
  expect(rows.at(-1)).toBe(`e${view.reading}`);
  ended?.();
  ended = undefined;
  expect(view.reading).toBeUndefined();
});
