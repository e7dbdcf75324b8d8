import { describe, expect, test } from 'vitest';
import { readJson } from './json';

describe('what the engine reads is read the same', () => {
  test.each([
    '{}',
    '[]',
    ' {"a": [1, -2.5e3, true, false, null, "\\u00e9\\n\\\\"], "b": {"c": {}}} ',
    '"text"',
    '0',
    '{"__proto__": {"x": 1}}',
  ])('%s', (text) => {
    const read = readJson(text);
    expect(read.ok && read.value).toEqual(JSON.parse(text));
    expect(read.ok && JSON.stringify(read.value)).toBe(JSON.stringify(JSON.parse(text)));
  });
});

describe('a fault has its place', () => {
  test.each([
    ['', 'empty', 1, 1],
    ['  \n ', 'empty', 2, 2],
    ['{', 'end', 1, 2],
    ['{"a": ', 'end', 1, 7],
    ['{\n  "a": 1,\n}', 'comma', 2, 9],
    ['[1,]', 'comma', 1, 3],
    ['{\n  // why\n}', 'comment', 2, 3],
    ['{"a": 1\n "b": 2}', 'unexpected', 2, 2],
    ['{a: 1}', 'key', 1, 2],
    ["{'a': 1}", 'key', 1, 2],
    ['{"a" 1}', 'unexpected', 1, 6],
    ['{"a": 01}', 'number', 1, 7],
    ['{"a": 1.}', 'number', 1, 7],
    ['{"a": nope}', 'unexpected', 1, 7],
    ['{"a": "x\n"}', 'string', 1, 7],
    ['{"a": "\\q"}', 'string', 1, 7],
    ['{"a": "never', 'string', 1, 7],
    ['{"a": 1, "a": 2}', 'twice', 1, 10],
    ['{} {}', 'unexpected', 1, 4],
    ['['.repeat(80), 'deep', 1, 66],
  ])('%j', (text, code, line, column) => {
    const read = readJson(text);
    expect(read.ok || { code: read.fault.code, line: read.fault.line, column: read.fault.column }).toEqual({
      code,
      line,
      column,
    });
    if (code !== 'comma' && code !== 'comment' && code !== 'twice')
      expect(() => JSON.parse(text) as unknown, text).toThrow();
  });
});

test('loose takes comments and trailing commas, and no more', () => {
  const read = readJson('// head\n{ /* in */ "a": [1, 2,], // tail\n "b": "//no", }\n// end', true);
  expect(read.ok && read.value).toEqual({ a: [1, 2], b: '//no' });
  expect(readJson('{,}', true).ok).toBe(false);
  expect(readJson('[1,,]', true).ok).toBe(false);
  expect(readJson('{} /* never', true)).toMatchObject({ ok: false, fault: { code: 'end' } });
});

test('lines are told by path, as the server spells it', () => {
  const read = readJson('{\n "args": [\n  "a",\n  "b"],\n "env": {\n  "MY TOKEN": "x" } }');
  const lines = read.ok ? read.lines : new Map<string, number>();
  expect(['args', 'args[1]', 'env."MY TOKEN"', ''].map((path) => lines.get(path))).toEqual([2, 4, 6, 1]);
});
