import { lookOf, type Look } from './colours';
import { after, type Pen } from './sgr';

// The output of a program line by line, as a terminal would show it: colours stay, other control codes are removed. A longer output is read
// on from the earlier end, so that the cost does not grow with each piece.

/** Text with one look. Default text has no look. */
export interface Run {
  text: string;
  look?: Look | undefined;
}

type Line = Run[];

interface Excerpt {
  /** The first lines, where lines between them and the last lines are left out. */
  head: readonly Run[];
  /** The number of lines left out. */
  hidden: number;
  /** The number of characters left out of lines that are too long. */
  cut: number;
  /** The last lines. */
  runs: readonly Run[];
}

const mostLines = 200;
export const mostBytes = 64 * 1024;
/** The part of both that shows the head. */
const headLines = 30;
const headBytes = mostBytes / 4;
/** The largest number of runs, since each run may become an element. When a person asks for all, ten times as many are shown. */
const mostRuns = 2_000;

// CSI sequences other than colours (cursor, erasing), OSC sequences (titles, links), and other two-character escapes.
const steering =
  // eslint-disable-next-line no-control-regex
  /\u001b\[(?![\d;:]*m)[0-?]*[ -/]*[@-~]|\u001b\][^\u0007\u001b]*(?:\u0007|\u001b\\)|\u001b[ -/]+[0-~]|\u001b[@-Z\\^_]/g;
// eslint-disable-next-line no-control-regex
const colouring = /\u001b\[([\d;:]*)m/;
// eslint-disable-next-line no-control-regex
const controls = /[\u0000-\u0008\u000b\u000c\u000e-\u001a\u001c-\u001f\u007f]/g;
/** The begin of a sequence that has no end yet. A longer one is treated as text. */
// eslint-disable-next-line no-control-regex
const begun = /\u001b(?:[ -/]*|\[[0-?]*[ -/]*|\][^\u0007\u001b]{0,2000}\u001b?)?$/;

export class Printed {
  #seen = '';
  #held = '';
  #lines: Line[] = [[]];
  /** The next text overwrites the last line. */
  #over = false;
  #pen: Pen = {};

  /** Reads the output so far. */
  take(text: string): void {
    if (!text.startsWith(this.#seen)) {
      this.#lines = [[]];
      this.#seen = this.#held = '';
      this.#over = false;
      this.#pen = {};
    }
    let more = this.#held + text.slice(this.#seen.length);
    this.#seen = text;
    this.#held = begun.exec(more)?.[0] ?? '';
    more = more
      .slice(0, more.length - this.#held.length)
      .replace(steering, '')
      .replace(controls, '');
    for (const [n, line] of more.split('\n').entries()) {
      if (n > 0) {
        this.#lines.push([]);
        this.#over = false;
      }
      for (const [m, part] of line.split('\r').entries()) {
        this.#over ||= m > 0;
        if (part) this.#add(part);
      }
    }
  }

  /** Adds a part of a line. A carriage return begins the line again. */
  #add(part: string): void {
    // split returns texts at even positions and colour codes at odd positions.
    for (const [n, piece] of part.split(colouring).entries()) {
      if (n % 2 > 0) this.#pen = after(this.#pen, piece);
      const text = n % 2 > 0 ? '' : piece.replaceAll('\u001b', '');
      if (!text) continue;
      if (this.#over) this.#lines[this.#lines.length - 1] = [];
      this.#over = false;
      push(this.#lines.at(-1) ?? [], { text, look: lookOf(this.#pen) });
    }
  }

  /** The whole output as text, for the clipboard. */
  get text(): string {
    return this.#lines
      .map((line) => line.map((run) => run.text).join(''))
      .join('\n')
      .replace(/\n+$/, '');
  }

  /** Returns the first and the last lines, or all. Programs print errors at the end, so more of the end is shown. */
  excerpt(all = false, ends: 'both' | 'head' | 'tail' = 'both'): Excerpt {
    const lines = this.#lines;
    let end = lines.length;
    if (ends !== 'head') while (end > 0 && lines[end - 1]?.length === 0) end--;
    else if (lines[end - 1]?.length === 0) end--; // the end of the last line
    const whole = all || (ends === 'both' && fits(lines, end));
    const to = whole || ends === 'tail' ? 0 : count(lines, 0, end, headLines, headBytes);
    const rest = ends === 'head' && !whole ? 0 : mostLines - headLines;
    const from = whole ? 0 : end - count(lines, to, end, rest, mostBytes - headBytes, true);
    const head = joined(lines.slice(0, to));
    const tail = lines.slice(from, end).map((line) => (whole ? line : cutLine(line)));
    const runs = joined(tail);
    const cut = whole ? 0 : lines.slice(from, end).reduce((sum, line) => sum + over(line), 0);
    const many = runs.length - mostRuns * (all ? 10 : 1);
    return {
      head: head.slice(0, mostRuns),
      hidden: from - to,
      cut,
      runs: many > 0 ? endOf(runs, many) : runs,
    };
  }
}

/** Reports whether the first lines are short enough to be shown whole. */
function fits(lines: readonly Line[], end: number): boolean {
  return end <= mostLines && count(lines, 0, end, end, mostBytes) === end;
}

/** Counts the lines between two numbers, from the first or the last on, that are within limits of lines and characters. The last is at least one. */
function count(
  lines: readonly Line[],
  from: number,
  to: number,
  most: number,
  size: number,
  backwards = false,
): number {
  let n = 0;
  for (let sum = 0; n < Math.min(most, to - from); n++) {
    sum += lengthOf(lines[backwards ? to - 1 - n : from + n] ?? []) + 1;
    if (sum > size + 1) return backwards ? Math.max(n, 1) : n;
  }
  return n;
}

/** Returns the runs of lines, with line ends between them. */
function joined(lines: readonly Line[]): Run[] {
  const runs: Run[] = [];
  for (const [n, line] of lines.entries()) {
    if (n > 0) push(runs, { text: '\n' });
    for (const run of line) push(runs, run);
  }
  return runs;
}

/** Removes the looks of the first runs, so that the last runs, which show errors, keep theirs. */
function endOf(runs: readonly Run[], plain: number): Run[] {
  const text = runs.slice(0, plain).map((run) => run.text);
  return [{ text: text.join('') }, ...runs.slice(plain)];
}

function lengthOf(line: Line): number {
  return line.reduce((sum, run) => sum + run.text.length, 0);
}

/** Returns the number of characters of a line that are too many. */
function over(line: Line): number {
  return Math.max(0, lengthOf(line) - mostBytes);
}

/** Cuts the begin off a line that is too long. */
function cutLine(line: Line): Line {
  let left = over(line);
  if (left <= 0) return line;
  const kept: Line = [];
  for (const run of line) {
    if (run.text.length > left) kept.push({ ...run, text: run.text.slice(Math.max(0, left)) });
    left -= run.text.length;
  }
  return kept;
}

/** Appends a run, and merges it with the run before where both look alike. */
function push(runs: Run[], run: Run): void {
  const last = runs.at(-1);
  if (last && last.look === run.look) runs[runs.length - 1] = { text: last.text + run.text, look: last.look };
  else runs.push(run);
}
