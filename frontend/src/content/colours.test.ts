import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { contrast, lookOf } from './colours';
import type { Colour } from './sgr';

const rgb = (hex: string): [number, number, number] => {
  const n = parseInt(hex.slice(1), 16);
  return [n >> 16, (n >> 8) & 255, n & 255];
};
/** The backgrounds of outputs. */
const page = ['#f7f7f8', '#15171a'] as const;

const some: Colour[] = [
  ...Array.from({ length: 256 }, (_, n) => n),
  ...[0, 64, 128, 192, 255].flatMap((r) =>
    [0, 96, 255].flatMap((g) => [0, 128, 255].map((b) => [r, g, b] as const)),
  ),
];

test('every colour can be read on our surfaces, in light and in dark', () => {
  for (const fg of some) {
    for (const dim of [false, true]) {
      const look = lookOf({ fg, dim });
      for (const theme of [0, 1] as const) {
        const ratio = contrast(rgb(look?.fg?.[theme] ?? ''), rgb(page[theme]));
        expect(ratio, `${String(fg)} dim ${dim} ${theme}`).toBeGreaterThanOrEqual(4.5);
      }
    }
  }
});

test('and on every ground', () => {
  for (const bg of some) {
    for (const fg of [undefined, 0, 1, 7, 15, 226, bg]) {
      for (const inverse of [false, true]) {
        const look = lookOf({ fg, bg, inverse });
        for (const theme of [0, 1] as const) {
          const ratio = contrast(rgb(look?.fg?.[theme] ?? ''), rgb(look?.bg?.[theme] ?? ''));
          expect(ratio, `${String(fg)} on ${String(bg)} ${theme}`).toBeGreaterThanOrEqual(4.5);
        }
      }
    }
  }
});

test('a colour that can be read stays what it is', () => {
  expect(lookOf({ fg: 1 })?.fg).toEqual(['#b43524', '#ee7c6b']);
  expect(lookOf({ fg: [0, 90, 0] })?.fg?.[0]).toBe('#005a00');
  expect(lookOf({ bg: [1, 2, 3] })?.bg).toEqual(['#010203', '#010203']);
});

test('what stands behind outputs is what is reckoned with', () => {
  const tokens = readFileSync(join(import.meta.dirname, '../styles/tokens.css'), 'utf8');
  const values = (name: string) =>
    // The first declaration of each theme; the themes with more contrast are further down in the file.
    [/#\w+/, /--dark,[^#]*(#\w+)/].map((look) => {
      const line = new RegExp(`--${name}: ([^;]*);`).exec(tokens)?.[1] ?? '';
      return look.exec(line)?.at(-1);
    });
  expect(values('surface1')).toEqual([...page]);
  // Inverse text without a colour of its own has the output's text colour as background.
  expect(lookOf({ inverse: true })?.bg).toEqual(values('muted').slice(0, 2));
});

test('looks that are the same are one', () => {
  expect(lookOf({ fg: 2, bold: true })).toBe(lookOf({ bold: true, fg: 2 }));
  expect(lookOf({})).toBeUndefined();
  expect(lookOf({ bold: false, fg: undefined })).toBeUndefined();
  expect(lookOf({ underline: true, strike: true })).toEqual({
    bold: false,
    italic: false,
    line: 'underline line-through',
  });
});
