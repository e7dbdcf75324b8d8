import { flushSync } from 'svelte';
import { afterEach, expect, test } from 'vitest';
import { app } from '../app.svelte';
import { session } from '../test/records';
import { visits } from './recent.svelte';

const view = app.view;
afterEach(() => {
  app.sessions.clear();
  app.view = view;
});

test('the conversation that is shown stands first, also when it is archived', () => {
  for (const id of ['v1', 'v2', 'v3'])
    app.sessions.set(id, session({ id, ...(id !== 'v1' && { archivedAt: '2026-11-22T14:00:00.000Z' }) }));
  for (const id of ['v1', 'v2', 'v3']) {
    app.view = { name: 'session', id };
    flushSync();
  }
  // The switcher goes from the first to the second, which is the one before.
  expect(visits.list().map((one) => one.id)).toEqual(['v3', 'v1']);
  app.view = { name: 'inbox' };
  flushSync();
  expect(visits.list().map((one) => one.id)).toEqual(['v1']);
});
