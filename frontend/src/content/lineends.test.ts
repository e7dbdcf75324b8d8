import { expect, test } from 'vitest';
import { toEdit, toFile } from './lineends';

test.each(['', 'a', 'a\n', 'a\nb', 'a\r\nb\r\n', '\ufeffa\r\n', '\n\n', '\r\n'])(
  'a file that was changed and changed back is what it was: %j',
  (content) => {
    const edited = toEdit(content);
    expect(edited?.text).not.toContain('\r');
    expect(edited && toFile(edited, edited.text)).toBe(content);
  },
);

test.each(['a\r\nb\n', 'a\nb\r\n', 'a\rb', 'a\r', '\n\r\n'])(
  'what would be lost is not changed: %j',
  (content) => {
    expect(toEdit(content)).toBeUndefined();
  },
);
