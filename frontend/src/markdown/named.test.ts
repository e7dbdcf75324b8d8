import { expect, test } from 'vitest';
import { contentOf, namedIn } from './named';

test.each([
  ['ts src/a.ts', 'x', 'src/a.ts', true],
  ['src/a.ts', 'x', 'src/a.ts', true],
  ['./src/a.ts', 'x', 'src/a.ts', true],
  ['ts:src/a.ts', 'x', 'src/a.ts', true],
  ['ts title="src/a.ts"', 'x', 'src/a.ts', true],
  ['ts title="my files/a.ts"', 'x', 'my files/a.ts', true],
  ["js {1,3} title='a.js'", 'x', 'a.js', true],
  ['js filename=a.js', 'x', 'a.js', true],
  ['go main.go', 'x', 'main.go', true],
  ['main.go', 'x', 'main.go', false],
  ['make Makefile', 'x', 'Makefile', true],
  ['ts', '// src/a.ts\nx', 'src/a.ts', true],
  ['ts', '// File: src/a.ts\nx', 'src/a.ts', true],
  ['py', '# src/a.py\nx', 'src/a.py', true],
  ['css', '/* src/a.css */\nx', 'src/a.css', true],
  ['html', '<!-- src/a.html -->\nx', 'src/a.html', true],
  ['', '-- db/a.sql\nx', 'db/a.sql', true],
  ['js', '// server.js\nx', 'server.js', false],
  ['text/html', 'x', 'text/html', false],
] as const)('%j with %j is of %s', (info, code, path, sure) => {
  expect(namedIn(info, code)).toMatchObject({ path, sure, whole: true });
});

test.each([
  ['ts', 'x'],
  ['', ''],
  ['ts {1,3}', 'x'],
  ['bash', '#!/usr/bin/env bash\nx'],
  ['bash', '# installs it\nx'],
  ['md', '# README.md\nx'],
  ['c', '#include "a.h"\nx'],
  ['ts', '// see src/a.ts for more\nx'],
  ['ts', '// https://example.com/a.ts\nx'],
  ['ts title="https://example.com/a.ts"', 'x'],
  ['ts', 'x\n// src/a.ts'],
])('%j with %j names no file', (info, code) => {
  expect(namedIn(info, code)).toBeUndefined();
});

test.each([
  ['ts src/a.ts', 'a\n// ...\nb'],
  ['ts src/a.ts', 'a\n  // … existing code …\nb'],
  ['ts src/a.ts', 'a\n// existing code stays, ...\nb'],
  ['ts src/a.ts', 'a\n// rest of the file\n'],
  ['ts src/a.ts', 'a\n{/* ... */}\nb'],
  ['ts src/a.ts', 'a\n...\nb'],
  ['py src/a.py', 'a\n# ... unchanged\nb'],
  ['html src/a.html', 'a\n<!-- ... -->\nb'],
  ['ts src/a.ts:12', 'a'],
  ['12:20:src/a.ts', 'a'],
  ['diff src/a.ts', '-a\n+b'],
  ['ts src/a.ts', ''],
])('%j with %j is a part of a file', (info, code) => {
  expect(namedIn(info, code)).toMatchObject({ whole: false });
});

test.each([
  ['py src/a.py', 'def f():\n    ...\n'],
  ['ts src/a.ts', 'f(...rest);\n// Loading...\n'],
  ['ts src/a.ts', 'const others = { ...same };'],
])('%j with %j is whole', (info, code) => {
  expect(namedIn(info, code)).toMatchObject({ whole: true });
});

test('the line that names the file goes in only where the file has it already', () => {
  const code = '// src/a.ts\n\nx';
  expect(contentOf(code, '// src/a.ts', undefined)).toBe('x\n');
  expect(contentOf(code, '// src/a.ts', 'y\n')).toBe('x\n');
  expect(contentOf(code, '// src/a.ts', '// src/a.ts\ny\n')).toBe('// src/a.ts\n\nx\n');
  expect(contentOf('x', undefined, 'y')).toBe('x');
  expect(contentOf('x', undefined, '')).toBe('x\n');
  expect(contentOf('', undefined, undefined)).toBe('');
});
