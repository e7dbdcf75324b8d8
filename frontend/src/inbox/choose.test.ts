import { expect, test } from 'vitest';
import { choose } from './choose';

const options = [
  { id: 'always', name: 'Always', kind: 'allow_always' },
  { id: 'once', name: 'Once', kind: 'allow_once' },
  { id: 'no', name: 'No', kind: 'reject_once' },
  { id: 'never', name: 'Never', kind: 'reject_always' },
];
const taken = (key: string, withAllow = false) => {
  const choice = choose(key, options, withAllow);
  return choice?.do === 'option' ? choice.option.id : choice?.do;
};

test('digits take the option of that number, in the agent’s order', () => {
  expect(['1', '2', '3', '4', '5'].map((key) => taken(key))).toEqual([
    'always',
    'once',
    'no',
    'never',
    undefined,
  ]);
});

test('R rejects with the first option that does', () => {
  expect(taken('r')).toBe('no');
  expect(taken('R')).toBe('no');
  expect(choose('r', options.slice(0, 2))).toBeUndefined();
});

test('A allows once, in the inbox alone', () => {
  expect(taken('a')).toBeUndefined();
  expect(taken('a', true)).toBe('once');
  expect(choose('a', options.slice(0, 1), true)).toBeUndefined();
});

test('Escape never answers, and Enter is the focused button’s', () => {
  expect(taken('Escape')).toBe('leave');
  expect(taken('Enter')).toBeUndefined();
  expect(taken('0')).toBeUndefined();
});
