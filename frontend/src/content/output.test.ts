import { expect, test } from 'vitest';
import { plain } from './output';

test('codes that steer a terminal are left out', () => {
  expect(plain('\u001b[1;31mred\u001b[0m \u001b]0;title\u0007x\u001b]8;;http://a\u001b\\link')).toBe(
    'red xlink',
  );
  expect(plain('a\u0000b\u0008c\td')).toBe('abc\td');
});

test('a line that was drawn over itself ends as its last state', () => {
  expect(plain('10%\r50%\r100%\r\ndone\r')).toBe('100%\ndone');
});
