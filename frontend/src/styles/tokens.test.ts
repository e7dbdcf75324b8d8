// @vitest-environment node
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, test } from 'vitest';

// Evaluates the tokens as an engine does, and checks the contrast of text: 4.5 to 1, and 7 to 1 in high contrast.

const css = readFileSync(join(import.meta.dirname, 'tokens.css'), 'utf8').replace(/\/\*[\s\S]*?\*\//g, '');
const root = /:root \{([\s\S]*?)\n\}/.exec(css)?.[1] ?? '';
const declared = new Map(
  [...root.matchAll(/--([\w-]+):([^;]*);/g)].map((match) => [match[1] ?? '', (match[2] ?? '').trim()]),
);

type Switches = Record<string, 'on' | 'off'>;

/** Returns a token's value: a switch that is on gives its fallback, a switch that is off gives nothing. */
function valueOf(name: string, switches: Switches): string {
  const written = declared.get(name);
  if (written === undefined) throw new Error(`there is no --${name}`);
  return fill(written, switches);
}

function fill(text: string, switches: Switches): string {
  const at = text.indexOf('var(--');
  if (at < 0) return text.trim();
  let depth = 0;
  let end = at;
  for (; end < text.length; end++) {
    if (text[end] === '(') depth++;
    if (text[end] === ')' && --depth === 0) break;
  }
  const inner = text.slice(at + 4, end);
  const comma = inner.indexOf(',');
  const name = (comma < 0 ? inner : inner.slice(0, comma)).trim().slice(2);
  const behind = comma < 0 ? '' : inner.slice(comma + 1);
  const state = switches[name];
  const value = state === undefined ? valueOf(name, switches) : state === 'on' ? fill(behind, switches) : '';
  return fill(`${text.slice(0, at)} ${value} ${text.slice(end + 1)}`, switches);
}

function luminance(colour: string): number {
  const hex = /^#([0-9a-f]{6})$/.exec(colour)?.[1];
  if (hex === undefined) throw new Error(`${colour} is no colour`);
  const [r = 0, g = 0, b = 0] = [0, 2, 4].map((from) => {
    const part = parseInt(hex.slice(from, from + 2), 16) / 255;
    return part <= 0.04045 ? part / 12.92 : ((part + 0.055) / 1.055) ** 2.4;
  });
  return 0.2126 * r + 0.7152 * g + 0.0722 * b;
}

function contrast(a: string, b: string): number {
  const [high = 0, low = 0] = [luminance(a), luminance(b)].sort((x, y) => y - x);
  return (high + 0.05) / (low + 0.05);
}

const surfaces = ['bg', 'surface1', 'surface2'];
const hues = ['accent', 'ok', 'warn', 'danger'];
/** The pairs of text colour and background. */
const written: [string, string][] = [
  ...['text', 'muted', ...hues.map((hue) => `${hue}-text`)].flatMap((ink) =>
    surfaces.map((ground): [string, string] => [ink, ground]),
  ),
  ...hues.flatMap((hue): [string, string][] => [
    [`${hue}-text`, `${hue}-wash`],
    ['text', `${hue}-wash`],
    ['muted', `${hue}-wash`],
  ]),
  ['on-accent', 'accent'],
  ['text', 'mark'],
  ...['surface1', 'ok-wash', 'danger-wash'].map((ground): [string, string] => ['code-keyword', ground]),
];

describe.each([
  ['light', { light: 'on', dark: 'off' }],
  ['dark', { light: 'off', dark: 'on' }],
] as const)('%s', (_, scheme) => {
  test.each([
    ['usual', 4.5, { usual: 'on', more: 'off' }],
    ['high', 7, { usual: 'off', more: 'on' }],
  ] as const)('%s contrast', (name, least, more) => {
    const switches = { ...scheme, ...more };
    const faint = written
      // Text on a filled accent needs the usual contrast only, because its hue has a meaning.
      .map(([ink, ground]) => ({
        pair: `${ink} on ${ground}`,
        ratio: contrast(valueOf(ink, switches), valueOf(ground, switches)),
        least: ink === 'on-accent' || ground === 'mark' ? 4.5 : least,
      }))
      .filter(({ ratio, least }) => ratio < least)
      .map(({ pair, ratio }) => `${pair}: ${ratio.toFixed(2)}`);
    expect(faint).toEqual([]);
    // The border of a control, and the focus ring.
    for (const line of name === 'high' ? ['border', 'border-strong', 'accent'] : ['accent', 'muted']) {
      expect(contrast(valueOf(line, switches), valueOf('bg', switches)), line).toBeGreaterThan(3);
    }
  });

  test('the words on a count and on what was found are dark', () => {
    for (const ground of ['warn', 'found'])
      expect(contrast('#17181a', valueOf(ground, { ...scheme, usual: 'on', more: 'off' }))).toBeGreaterThan(
        4.5,
      );
  });
});
