import { expect, test } from 'vitest';
import type { Session } from '../api/records';
import { Sessions } from './sessions';

const told = (id: string, more = '') =>
  JSON.parse(
    JSON.stringify({ id, title: id, commands: [{ name: `plan${more}` }], configOptions: [{ id: 'mode' }] }),
  ) as Session;

test('what agents tell of themselves is held once', () => {
  const sessions = new Sessions();
  sessions.set('a', told('a'));
  sessions.set('b', told('b'));
  sessions.set('c', told('c', ' more'));
  const [a, b, c] = ['a', 'b', 'c'].map((id) => sessions.get(id));
  expect(b).toEqual(told('b'));
  expect(b?.commands).toBe(a?.commands);
  expect(b?.configOptions).toBe(a?.configOptions);
  expect(c?.commands).toEqual([{ name: 'plan more' }]);
});

test('what is told no more does not stay', () => {
  const sessions = new Sessions();
  for (let n = 0; n < 100; n++) sessions.set('a', told('a', String(n)));
  const old = told('b', '0');
  sessions.set('b', old);
  expect(sessions.get('b')?.commands).toBe(old.commands);
});
