import { afterEach, expect, test, vi } from 'vitest';
import { draftOf, dropDraft, keepDraft, linesOf } from './text';

afterEach(() => {
  localStorage.clear();
  vi.restoreAllMocks();
});

test('lines are counted as an editor does', () => {
  expect(['', 'a', 'a\n', 'a\nb', 'a\nb\n', '\n\n'].map(linesOf)).toEqual([1, 1, 1, 2, 2, 2]);
});

test('what is not saved outlives the page, by conversation and path', () => {
  const draft = { version: 'v1', text: 'mine', mark: '', end: '\n' as const };
  expect(keepDraft('s', '/a', draft)).toBe(true);
  expect(draftOf('s', '/a')).toEqual(draft);
  expect(draftOf('s', '/b')).toBeUndefined();
  expect(draftOf('t', '/a')).toBeUndefined();
  dropDraft('s', '/a');
  expect(draftOf('s', '/a')).toBeUndefined();
  vi.spyOn(Storage.prototype, 'setItem').mockImplementation(() => {
    throw new DOMException('full', 'QuotaExceededError');
  });
  expect(keepDraft('s', '/a', draft)).toBe(false);
});

test('what another tab has kept since is not dropped with what was saved here', () => {
  const draft = (text: string) => ({ version: 'v1', text, mark: '', end: '\n' as const });
  keepDraft('s', '/a', draft('mine'));
  keepDraft('s', '/a', draft('of another tab'));
  dropDraft('s', '/a', 'mine');
  expect(draftOf('s', '/a')?.text).toBe('of another tab');
  dropDraft('s', '/a', 'of another tab');
  expect(draftOf('s', '/a')).toBeUndefined();
});
