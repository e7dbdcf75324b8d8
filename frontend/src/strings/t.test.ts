import { expect, test } from 'vitest';
import { lookup, t, tn } from './t';

test('parameters are filled in, and what is missing stays visible', () => {
  expect(t('age.minutes', { n: 3 })).toBe('3 m');
  expect(t('age.minutes')).toBe('{n} m');
  expect(t('error.unknown', { detail: 'a {n} b' })).toBe('That did not work: a {n} b');
});

test('counted texts have their form', () => {
  expect([tn('inbox.count', 1), tn('inbox.count', 2)]).toEqual(['1 waiting for you', '2 waiting for you']);
});

test('codes from outside are looked up, and only in the catalogue', () => {
  expect(lookup('error.turn.running')).toBe('A turn is running.');
  expect(lookup('error.nobody.knows')).toBeUndefined();
  expect(lookup('constructor')).toBeUndefined();
});
