import { expect, test } from 'vitest';
import { pixelsOf } from './pixels';

const base64 = (...bytes: (number | string)[]) =>
  btoa(bytes.map((one) => (typeof one === 'string' ? one : String.fromCharCode(one))).join(''));

const png = (...size: number[]) => base64(0x89, 'PNG\r\n\x1a\n\0\0\0\rIHDR', ...size, 1, 0, 0, 0, 0);
const segment = (marker: number, length: number) => [
  0xff,
  marker,
  (length + 2) >> 8,
  (length + 2) & 255,
  '\0'.repeat(length),
];
const frame = (marker: number) => [0xff, marker, 0, 17, 8, 0x03, 0xe8, 0x07, 0xd0, 3];
const webp = (kind: string, ...rest: (number | string)[]) =>
  base64('RIFF\0\0\0\0WEBP', kind, 0, 0, 0, 0, ...rest);

test.each<[string, string, number | undefined]>([
  ['a PNG', png(0, 0, 0x4e, 0x20, 0, 0, 0x4e, 0x20), 400_000_000],
  ['a PNG that is too large to be true', png(0x80, 0, 0, 0, 0x80, 0, 0, 0), 2 ** 62],
  ['a PNG without a size', png(0, 0, 0, 0, 0, 0, 0, 1), undefined],
  ['a GIF', base64('GIF89a', 0xd0, 7, 0xe8, 3, 0, 0, 0, ',', 0, 0, 0, 0, 1, 0, 1, 0), 2_000_000],
  ['an older GIF', base64('GIF87a', 1, 0, 2, 0, 0, 0, 0, ',', 0, 0, 0, 0, 1, 0, 2, 0), 2],
  [
    'a GIF whose first frame is larger than its screen, which grows with it',
    base64(
      'GIF89a',
      1,
      0,
      1,
      0,
      0x81,
      0,
      0,
      '\0'.repeat(12),
      '!\xf9\x04....\0',
      ',',
      1,
      0,
      0,
      0,
      0xcf,
      7,
      0xe8,
      3,
    ),
    2_000_000,
  ],
  ['a GIF without a frame', base64('GIF89a', 1, 0, 1, 0, 0, 0, 0, ';'), undefined],
  ['a JPEG', base64(0xff, 0xd8, ...segment(0xe0, 14), ...frame(0xc0)), 2_000_000],
  [
    'a progressive JPEG behind much else',
    base64(0xff, 0xd8, ...segment(0xe1, 60_000), ...segment(0xe2, 60_001), 0xff, ...frame(0xc2)),
    2_000_000,
  ],
  ['a JPEG whose tables come first', base64(0xff, 0xd8, ...segment(0xc4, 20), ...frame(0xc1)), 2_000_000],
  ['a JPEG that ends before', base64(0xff, 0xd8, ...segment(0xe0, 14), 0xff, 0xda, 0, 2), undefined],
  ['a JPEG that is cut off', base64(0xff, 0xd8, 0xff, 0xe0, 0xff, 0xff), undefined],
  ['a WebP', webp('VP8 ', 0, 0, 0, 0x9d, 0x01, 0x2a, 0xd0, 0x47, 0xe8, 0x43), 2_000_000],
  ['one without losses', webp('VP8L', 0x2f, 0xcf, 0xc7, 0xf9, 0), 2_000_000],
  ['one with more than a picture', webp('VP8X', 0, 0, 0, 0, 0xcf, 0x07, 0, 0xe7, 0x03, 0), 2_000_000],
  ['one of a kind that is not known', webp('VP9 ', 0, 0, 0, 0, 0, 0, 0, 0, 0, 0), undefined],
  ['one without losses that is cut off', webp('VP8L', 0x2f, 0xcf, 0xc7), undefined],
  ['something else', base64('BM', 1, 2, 3, 4, 5, 6, 7, 8, 9, 10), undefined],
  ['half a head', base64(0x89, 'PNG\r\n\x1a\n\0\0'), undefined],
  ['what is not base64', 'A', undefined],
  ['nothing', '', undefined],
])('how many pixels %s has', (_, data, pixels) => {
  expect(pixelsOf(data)).toBe(pixels);
});

test('how many pixels one has whose base64 is in lines, however long it is', () => {
  const long = base64(0x89, 'PNG\r\n\x1a\n\0\0\0\rIHDR', 0, 0, 1, 0, 0, 0, 1, 0, '\0'.repeat(2 ** 20));
  for (const line of [/.{64}/g, /.{76}/g])
    for (const end of ['\n', '\r\n']) expect(pixelsOf(long.replace(line, `$&${end}`))).toBe(65_536);
});
