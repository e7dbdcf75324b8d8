import { expect, test } from 'vitest';
import '../strings/attachments';
import { ApiError } from '../api/errors';
import { fromPaste, pastedName, pathOf, troubleText } from './limits';

test.each([
  [new ApiError('attachment.too_large', { limit: '50 MiB' }), 'a.mov is too large: at most 50 MiB per file.'],
  [new ApiError('attachment.missing', {}), 'a.mov is no longer there.'],
  [
    new ApiError('attachment.link_outside', { target: '/etc' }),
    'a.mov is a link that leads outside the directories of this conversation, to /etc.',
  ],
  [new ApiError('network'), 'Deskhand does not answer.'],
  [new ApiError('attachment.new_rule', {}, 400, 'too blue'), 'a.mov was not attached: too blue'],
  [new Error('boom'), 'Something went wrong inside Deskhand.'],
])('%s', (thrown, text) => {
  expect(troubleText('a.mov', thrown)).toBe(text);
});

test('a problem is about one of the paths', () => {
  const asked = ['/a/one', '/b/two', '/c/two'];
  expect(pathOf({ name: '/a/one', code: '', params: {} }, asked)).toBe('/a/one');
  expect(pathOf({ name: 'two', code: '', params: { path: '/c/two' } }, asked)).toBe('/c/two');
  expect(pathOf({ name: 'two', code: '', params: {} }, asked)).toBeUndefined(); // two paths match, and the problem does not say which
  expect(pathOf({ name: 'three', code: '', params: {} }, asked)).toBeUndefined();
});

test('what is pasted has a name', () => {
  const at = new Date(2026, 10, 22, 9, 5, 7);
  expect(pastedName('image/png', at)).toBe('pasted-2026-11-22-090507.png');
  expect(pastedName('text/html', at)).toBe('pasted-2026-11-22-090507.txt');
  expect(pastedName('', at)).toBe('pasted-2026-11-22-090507.bin');
  const named = (file: File) => [file.name, file.type];
  expect(fromPaste({ long: 'words' }, at).map(named)).toEqual([
    ['pasted-2026-11-22-090507.txt', 'text/plain'],
  ]);
  const files = [
    new File([''], 'image.png', { type: 'image/png' }),
    new File([''], 'mine.png', { type: 'image/png' }),
  ];
  expect(fromPaste({ files }, at).map(named)).toEqual([
    ['pasted-2026-11-22-090507.png', 'image/png'],
    ['mine.png', 'image/png'],
  ]);
});
