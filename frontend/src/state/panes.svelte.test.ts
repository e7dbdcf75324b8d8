import { beforeEach, expect, test } from 'vitest';
import type { Place } from './reading';
import type { SessionView } from './session.svelte';
import { neighbour, Panes } from './panes.svelte';

beforeEach(() => localStorage.clear());

/** Panes of a fake screen. The sessions are a to e, a is the newest. */
function screen() {
  const told: string[] = [];
  let name = 'session';
  const panes: Panes = new Panes({
    transcript: (id) => {
      told.push(`load ${id}`);
      return { id } as SessionView;
    },
    visible: () => name === 'session',
    entered: (id, at) => show(id, at),
    recent: () => ['a', 'b', 'c', 'd', 'e'],
    begin: () => {
      name = 'new';
      told.push('begin');
    },
    emptied: () => {
      name = 'new';
      told.push('emptied');
    },
  });
  function show(id: string, at?: Place) {
    const visible = name === 'session';
    name = 'session';
    panes.show(id, at, visible);
  }
  return { panes, told, show, elsewhere: () => (name = 'inbox'), name: () => name };
}

const order = (panes: Panes) => panes.list.map((pane) => pane.session).join('');

test('one conversation takes the place of another, and of nothing that stands beside', () => {
  const { panes, show } = screen();
  show('a');
  show('b');
  expect(order(panes)).toBe('b');
  panes.split();
  expect(order(panes)).toBe('ba');
  expect(panes.current?.session).toBe('a');
  show('c');
  expect(order(panes)).toBe('bc');
  show('b');
  expect(order(panes)).toBe('bc');
  expect(panes.current?.session).toBe('b');
});

test('what stands on the screen is not loaded again when it is gone to', () => {
  const { panes, told, show, elsewhere } = screen();
  show('a');
  panes.split('b');
  told.length = 0;
  show('a');
  expect(told).toEqual([]);
  elsewhere();
  show('a');
  expect(told).toEqual(['load a']);
});

test('there are four at the most, and the fifth takes the place of the one that is worked in', () => {
  const { panes, show } = screen();
  show('a');
  for (let n = 0; n < 5; n++) panes.split();
  expect(order(panes)).toBe('abcd');
  panes.split('e');
  expect(order(panes)).toBe('abce');
});

test('the first conversation of all, and one beside the only one, are begun', () => {
  const { panes, told, show } = screen();
  panes.split('a');
  expect(order(panes)).toBe('a');
  const alone = screen();
  alone.panes.split();
  expect(alone.told).toContain('load a');
  expect(told).toEqual(['load a']);
  show('a');
});

test('a pane that is closed gives way to its neighbour, the last one to what begins', () => {
  const { panes, told, show } = screen();
  show('a');
  panes.split('b');
  panes.split('c');
  panes.close();
  expect(order(panes)).toBe('ab');
  expect(panes.current?.session).toBe('b');
  panes.drop('a');
  expect(panes.current?.session).toBe('b');
  panes.drop('b');
  expect(told.at(-1)).toBe('emptied');
});

test('what is deleted while something else is shown leaves that shown', () => {
  const { panes, told, show, elsewhere, name } = screen();
  show('a');
  panes.split('b');
  elsewhere();
  panes.drop('b');
  panes.drop('a');
  expect(name()).toBe('inbox');
  expect(told).not.toContain('emptied');
});

test('what stood beside each other stands there again', () => {
  const { panes, show } = screen();
  show('a');
  panes.split('b');
  expect(Panes.kept()).toEqual(['a', 'b']);
  const again = screen();
  again.panes.restore(Panes.kept(), 'a');
  expect(again.panes.current?.session).toBe('a');
  localStorage.setItem('deskhand.panes', '{broken');
  expect(Panes.kept()).toEqual([]);
});

test('the neighbours of a pane are the ones beside it on the screen', () => {
  expect(neighbour(0, 2, 'right')).toBe(1);
  expect(neighbour(1, 2, 'left')).toBe(0);
  expect(neighbour(0, 2, 'down')).toBeUndefined();
  expect(neighbour(1, 3, 'down')).toBe(2);
  expect(neighbour(2, 3, 'up')).toBe(0);
  expect(neighbour(2, 3, 'right')).toBeUndefined();
  expect(neighbour(1, 4, 'down')).toBe(3);
  expect(neighbour(3, 4, 'left')).toBe(2);
  expect(neighbour(0, 1, 'right')).toBeUndefined();
});
