import { expect, test } from 'vitest';
import { found, isPart, wordsOf } from './parts';

test('a search finds all of its words, in any order, without capitals and accents', () => {
  const texts = 'Local API  Tokens that were made\nCafé';
  expect(found(texts, wordsOf('  tokens   LOCAL '))).toBe(true);
  expect(found(texts, wordsOf('cafe'))).toBe(true);
  expect(found(texts, wordsOf('token place'))).toBe(false);
  expect(found(texts, wordsOf(' '))).toBe(true);
});

test('only the parts that there are can be led to', () => {
  expect(isPart('discord')).toBe(true);
  expect(isPart('toString')).toBe(false);
  expect(isPart(undefined)).toBe(false);
});
