import { expect, test } from 'vitest';
import type { Attachment } from '../api/records';
import { boxOf, shownAs } from './media';

const file = (part: Partial<Attachment>): Attachment => ({
  id: 'a1',
  filename: 'a',
  mimeType: 'image/png',
  size: 100,
  ...part,
});

test.each([
  [{}, 'image'],
  [{ mimeType: 'IMAGE/JPEG; q=1' }, 'image'],
  [{ mimeType: 'image/svg+xml' }, undefined],
  [{ mimeType: 'text/html' }, undefined],
  [{ mimeType: 'audio/wav' }, 'audio'],
  [{ mimeType: 'video/mp4' }, 'video'],
  [{ mimeType: 'application/pdf' }, undefined],
  [{ directory: true }, undefined],
  [{ missing: true }, undefined],
  [{ size: 40 * 1024 * 1024 }, 'too_large'],
  [{ width: 8192, height: 8192 }, 'image'],
  [{ width: 23_000, height: 23_000 }, 'too_large'], // less than 1 MiB in one colour, 2 GB once decoded
  [{ mimeType: 'video/mp4', size: 60 * 1024 * 1024 }, 'video'],
  [{ mimeType: 'video/mp4', size: 70 * 1024 * 1024 }, 'too_large'],
])('%j is shown as %s', (part, kind) => {
  expect(shownAs(file(part))).toBe(kind);
});

test.each([
  [
    { width: 960, height: 600 },
    { width: 480, height: 300 },
  ],
  [
    { width: 100, height: 50 },
    { width: 100, height: 50 },
  ],
  [
    { width: 200, height: 3200 },
    { width: 20, height: 320 },
  ],
  [
    { width: 100_000, height: 1 },
    { width: 480, height: 1 },
  ],
  [{ width: 0, height: 50 }, undefined],
  [{}, undefined],
])('the room of %j', (size, box) => {
  expect(boxOf(size)).toEqual(box);
});
