import { expect, test } from 'vitest';
import { isBase64, pretty, readContent } from './blocks';

test.each([
  [{ type: 'text', text: 'hi' }, 'text'],
  [{ type: 'image', mimeType: 'image/png', data: 'iVBORw0KGgo=' }, 'image'],
  [{ type: 'image', mimeType: 'image/svg+xml', data: 'PHN2Zz4=' }, 'raw'],
  [{ type: 'image', mimeType: 'image/png', data: '"><script>' }, 'raw'],
  [{ type: 'audio', mimeType: 'audio/wav', data: 'AAAA' }, 'audio'],
  [{ type: 'resource_link', uri: 'file:///a', name: 'a' }, 'link'],
  [{ type: 'resource_link' }, 'raw'],
  [{ type: 'resource', resource: { uri: 'file:///a', text: 'x' } }, 'resource'],
  [{ type: 'resource', resource: 'x' }, 'raw'],
  [{ type: 'hologram' }, 'raw'],
  [{ type: 'text' }, 'raw'],
  [null, 'raw'],
  [7, 'raw'],
])('%j is %s', (value, kind) => {
  expect(readContent(value).kind).toBe(kind);
});

test.each([
  ['AAAA', true],
  ['AAA=', true],
  ['AA==', true],
  ['A===', false],
  ['A=A=', false],
  ['==', false],
  ['', false],
  ['AA A', false],
  ['A'.repeat(2 ** 25), true],
])('base64 is known by its letters, however long', (data, want) => {
  expect(isBase64(data)).toBe(want);
});

test('the size of what is encoded is known without decoding it', () => {
  const content = readContent({ type: 'image', mimeType: 'image/png', data: btoa('12345') });
  expect(content.kind === 'image' && content.bytes).toBe(5);
});

test('any value can be written for people', () => {
  expect(pretty({ a: 1 })).toBe('{\n  "a": 1\n}');
  expect(pretty('text')).toBe('text');
  expect(pretty(undefined)).toBe('undefined');
});
