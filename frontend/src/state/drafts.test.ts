import { beforeEach, expect, test } from 'vitest';
import { forgetTyped, forgetTypedBut, keepTyped, keptTyped } from './drafts';

beforeEach(() => sessionStorage.clear());

test('what was typed is there until its request ends', () => {
  keepTyped('r1', { name: 'a' });
  keepTyped('r2', [1]);
  expect([keptTyped('r1'), keptTyped('r2'), keptTyped('r3')]).toEqual([{ name: 'a' }, [1], undefined]);
  forgetTyped('r1');
  expect(keptTyped('r1')).toBeUndefined();
  expect(keptTyped('r2')).toEqual([1]);
});

test('of requests that ended unseen nothing stays, and what belongs to others does', () => {
  sessionStorage.setItem('deskhand.token', 'T');
  for (const id of ['r1', 'r2', 'r3']) keepTyped(id, id);
  forgetTypedBut(new Set(['r2']));
  expect([keptTyped('r1'), keptTyped('r2'), keptTyped('r3')]).toEqual([undefined, 'r2', undefined]);
  expect(sessionStorage.getItem('deskhand.token')).toBe('T');
});

test('a store that is full, closed or holds something else does no harm', () => {
  const closed = () => {
    throw new DOMException('no', 'SecurityError');
  };
  const store = { getItem: closed, setItem: closed, removeItem: closed, key: closed, length: 1 };
  expect(() => keepTyped('r1', 'x', store)).not.toThrow();
  expect(keptTyped('r1', store)).toBeUndefined();
  expect(() => forgetTyped('r1', store)).not.toThrow();
  expect(() => forgetTypedBut(new Set(), store)).not.toThrow();
  sessionStorage.setItem('deskhand.typed.r1', '{');
  expect(keptTyped('r1')).toBeUndefined();
});
