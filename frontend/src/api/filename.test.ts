import { expect, test } from 'vitest';
import { fileNameOf } from './filename';

test.each([
  ['attachment; filename=2026-11-21-fix-login.md', '2026-11-21-fix-login.md'],
  ['attachment; filename="a \\"b\\".json"', 'a "b".json'],
  ["attachment; filename*=utf-8''2026-11-21-%E4%B8%AD%E6%96%87.zip", '2026-11-21-中文.zip'],
  ["attachment; filename*=utf-8''%E4%B8; filename=plain.md", 'plain.md'],
  ['attachment; filename="../../etc/passwd"', 'passwd'],
  ['attachment; filename=""', undefined],
  ['attachment', undefined],
  [null, undefined],
])('%s names %s', (disposition, name) => {
  expect(fileNameOf(disposition)).toBe(name);
});
