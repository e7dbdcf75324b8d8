import type { Colour, Pen } from './sgr';

// Maps the colours of programs to the page. Programs choose colours for an unknown terminal; here every text has a contrast of at least
// 4.5:1, in light and in dark (WCAG 2.2, 1.4.3).

/** The look of a run of text. Equal looks are the same object. */
export interface Look {
  readonly bold: boolean;
  readonly italic: boolean;
  readonly line: string;
  /** The colours for a light and a dark page. A missing colour is the default. */
  readonly fg?: Pair;
  readonly bg?: Pair;
}

type Pair = readonly [light: string, dark: string];
type Rgb = readonly [number, number, number];

const least = 4.5;
/** The default background and text colours of outputs. */
const surface = [hex('#f7f7f8'), hex('#15171a')] as const;
const words = [hex('#5d636b'), hex('#9aa0a8')] as const;

// The 16 text colours, in the hues of tokens.css. White text on a white page becomes dark.
const inks = [
  [
    ...rgbs('#17181a #b43524 #1c7048 #83590b #2556cf #7d3c98 #0b6b7a #5d636b'),
    ...rgbs('#6b717a #c93f2c #22804f #916309 #2f62e0 #9147b0 #0d7686 #17181a'),
  ],
  [
    ...rgbs('#757c85 #ee7c6b #4fc18d #d9a03f #7ba3ff #c792ea #56c2d0 #c6cad0'),
    ...rgbs('#8d949d #ff9c8d #6edba9 #efbd66 #a3bfff #dcb4f5 #7fdcea #ffffff'),
  ],
] as const;
/** The 16 background colours. */
const grounds = [
  ...rgbs('#17181a #c2402e #2b8a5f #b07d1f #3a6ae0 #8a4aa8 #1b8496 #c9ccd2'),
  ...rgbs('#5d636b #e5604d #3fb27f #d9a03f #5b8cff #b07cc6 #3fb0c2 #ffffff'),
];

function hex(text: string): Rgb {
  const n = parseInt(text.slice(1), 16);
  return [n >> 16, (n >> 8) & 255, n & 255];
}

function rgbs(text: string): Rgb[] {
  return text.split(' ').map(hex);
}

function css(colour: Rgb): string {
  return `#${colour.map((part) => Math.round(part).toString(16).padStart(2, '0')).join('')}`;
}

function luminance(colour: Rgb): number {
  const [r, g, b] = colour.map((part) => {
    const share = part / 255;
    return share <= 0.04045 ? share / 12.92 : ((share + 0.055) / 1.055) ** 2.4;
  }) as [number, number, number];
  return 0.2126 * r + 0.7152 * g + 0.0722 * b;
}

export function contrast(one: Rgb, other: Rgb): number {
  const [a, b] = [luminance(one), luminance(other)];
  return (Math.max(a, b) + 0.05) / (Math.min(a, b) + 0.05);
}

function mix(one: Rgb, other: Rgb, share: number): Rgb {
  return one.map((part, n) => part + ((other[n] ?? 0) - part) * share) as [number, number, number];
}

/** Returns the nearest colour that is readable on a background. */
function readable(colour: Rgb, ground: Rgb): Rgb {
  const white: Rgb = [255, 255, 255];
  const end: Rgb = contrast(white, ground) > contrast([0, 0, 0], ground) ? white : [0, 0, 0];
  const behind = rounded(ground);
  let found = rounded(colour);
  for (let step = 1; contrast(found, behind) < least && step <= 10; step++)
    found = rounded(mix(colour, end, step / 10));
  return found;
}

/** Rounds a colour to whole numbers. */
function rounded(colour: Rgb): Rgb {
  return colour.map(Math.round) as [number, number, number];
}

/** Returns a colour of the 256-colour table from index 16 on: a cube of 6 × 6 × 6 colours, then greys. */
function ofTable(index: number): Rgb {
  if (index >= 232) {
    const grey = 8 + (index - 232) * 10;
    return [grey, grey, grey];
  }
  const level = (n: number) => (n === 0 ? 0 : 55 + n * 40);
  const n = index - 16;
  return [level(Math.floor(n / 36)), level(Math.floor(n / 6) % 6), level(n % 6)];
}

function resolve(colour: Colour, named: readonly Rgb[]): Rgb {
  return typeof colour === 'number' ? (named[colour] ?? ofTable(colour)) : colour;
}

function paint({ fg: ink, bg: ground, inverse, dim }: Pen): Pick<Look, 'fg' | 'bg'> {
  if (ink === undefined && ground === undefined && !inverse && !dim) return {};
  const [light, dark] = ([0, 1] as const).map((theme) => {
    let fg = ink === undefined ? words[theme] : resolve(ink, inks[theme]);
    let bg = ground === undefined ? surface[theme] : resolve(ground, grounds);
    if (inverse) [fg, bg] = [bg, fg];
    if (dim) fg = mix(fg, bg, 0.3);
    return [css(readable(fg, bg)), css(bg)] as const;
  }) as [Pair, Pair];
  return {
    fg: [light[0], dark[0]],
    ...(ground !== undefined || inverse ? { bg: [light[1], dark[1]] } : {}),
  };
}

const looks = new Map<string, Look | undefined>();
/** A rainbow in true colour would fill the cache without end. */
const mostLooks = 1_000;

/** Returns the look of a pen; undefined for default text. */
export function lookOf(pen: Pen): Look | undefined {
  const key = JSON.stringify([
    pen.fg,
    pen.bg,
    pen.bold,
    pen.dim,
    pen.italic,
    pen.underline,
    pen.inverse,
    pen.strike,
  ]);
  if (looks.has(key)) return looks.get(key);
  if (looks.size >= mostLooks) looks.clear();
  const look: Look = {
    bold: pen.bold === true,
    italic: pen.italic === true,
    line: [pen.underline && 'underline', pen.strike && 'line-through'].filter(Boolean).join(' '),
    ...paint(pen),
  };
  const plain = !look.bold && !look.italic && look.line === '' && !look.fg;
  looks.set(key, plain ? undefined : look);
  return looks.get(key);
}
