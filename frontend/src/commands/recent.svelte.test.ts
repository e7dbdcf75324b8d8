import { flushSync } from 'svelte';
import { afterEach, expect, test } from 'vitest';
import { conversations, navigation } from '../state/state';
import { session } from '../test/records';
import { visits } from './recent.svelte';

const view = navigation.view;
afterEach(() => {
  conversations.sessions.clear();
  navigation.view = view;
});

test('the conversation that is shown stands first, also when it is archived', () => {
  for (const id of ['v1', 'v2', 'v3'])
    conversations.sessions.set(
      id,
      session({ id, ...(id !== 'v1' && { archivedAt: '2026-11-22T14:00:00.000Z' }) }),
    );
  for (const id of ['v1', 'v2', 'v3']) {
    navigation.view = { name: 'session', id };
    flushSync();
  }
  // The switcher goes from the first to the second, which is the session before.
  expect(visits.list().map((one) => one.id)).toEqual(['v3', 'v1']);
  navigation.view = { name: 'inbox' };
  flushSync();
  expect(visits.list().map((one) => one.id)).toEqual(['v1']);
});
