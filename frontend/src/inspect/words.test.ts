import { expect, test } from 'vitest';
import '../strings/inspect';
import { readable, wordsOf } from './words';

const frame = {
  seq: 1,
  at: '',
  generation: 1,
  dir: 'in',
  kind: 'response',
  method: 'session/new',
  size: 1,
} as const;

test('what the signs of a row say, in words', () => {
  expect(wordsOf({ ...frame, failed: true })).toBe('from the agent, response, error');
  expect(wordsOf({ ...frame, dir: 'note', kind: 'note', method: 'turn.began' })).toBe('Deskhand’s note');
});

test('a message is laid out, what is none stays as it came, and a long one is cut for the eye alone', () => {
  expect(readable('{"a":[1]}').text).toBe('{\n  "a": [\n    1\n  ]\n}');
  expect(readable('"starting up"').text).toBe('starting up');
  expect(readable('{broken').text).toBe('{broken');
  const long = readable(JSON.stringify({ text: 'x'.repeat(300_000) }));
  expect(long.text.length).toBe(200_000);
  expect(long.whole.length).toBeGreaterThan(300_000);
  expect(long.cut).toContain('are shown');
});
