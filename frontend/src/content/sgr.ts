// Reads "select graphic rendition" sequences (ECMA-48 8.3.117) with the colours of ITU-T T.416, in both forms: 38;2;r;g;b and 38:2::r:g:b.
// Attributes that the page does not show, such as blinking, are ignored.

/** An index into the 256-colour table, or a colour. */
export type Colour = number | readonly [number, number, number];

export interface Pen {
  readonly fg?: Colour | undefined;
  readonly bg?: Colour | undefined;
  readonly bold?: boolean;
  readonly dim?: boolean;
  readonly italic?: boolean;
  readonly underline?: boolean;
  readonly inverse?: boolean;
  readonly strike?: boolean;
}

const on: Readonly<Record<number, Pen>> = {
  1: { bold: true },
  2: { dim: true },
  3: { italic: true },
  4: { underline: true },
  7: { inverse: true },
  9: { strike: true },
  21: { underline: true },
  22: { bold: false, dim: false },
  23: { italic: false },
  24: { underline: false },
  27: { inverse: false },
  29: { strike: false },
  39: { fg: undefined },
  49: { bg: undefined },
};

/** Returns the pen after a sequence. codes is the text between `ESC [` and `m`. */
export function after(pen: Pen, codes: string): Pen {
  const list = codes.split(';');
  for (let n = 0; n < list.length; n++) {
    const [code = 0, ...within] = (list[n] ?? '').split(':').map(Number);
    if (code === 38 || code === 48 || code === 58) {
      const rest = within.length > 0 ? within : list.slice(n + 1, n + 5).map(Number);
      if (within.length === 0) n += rest[0] === 5 ? 2 : rest[0] === 2 ? 4 : 1;
      const colour = colourOf(rest, within.length > 0);
      if (colour !== undefined && code !== 58) pen = { ...pen, [code === 38 ? 'fg' : 'bg']: colour };
    } else if (code === 0) pen = {};
    else if (code === 4 && within[0] === 0) pen = { ...pen, underline: false };
    else if (code >= 30 && code <= 37) pen = { ...pen, fg: code - 30 };
    else if (code >= 90 && code <= 97) pen = { ...pen, fg: code - 82 };
    else if (code >= 40 && code <= 47) pen = { ...pen, bg: code - 40 };
    else if (code >= 100 && code <= 107) pen = { ...pen, bg: code - 92 };
    else pen = { ...pen, ...on[code] };
  }
  return pen;
}

/** In the form with colons a colour space may stand before the three parts. */
function colourOf([kind, ...parts]: readonly number[], colons: boolean): Colour | undefined {
  const inRange = (part: number | undefined) => part !== undefined && part >= 0 && part <= 255;
  if (kind === 5) return inRange(parts[0]) ? parts[0] : undefined;
  if (kind !== 2) return undefined;
  const [r, g, b] = colons && parts.length > 3 ? parts.slice(1) : parts;
  if (r === undefined || g === undefined || b === undefined) return undefined;
  return [r, g, b].every(inRange) ? [r, g, b] : undefined;
}
