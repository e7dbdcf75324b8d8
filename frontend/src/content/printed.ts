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
  runs: readonly Run[];
  /** The number of lines left out at the start. */
  hidden: number;
}

const mostLines = 200;
export const mostBytes = 64 * 1024;
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

  /** Returns the last lines: programs print errors at the end. */
  excerpt(all = false): Excerpt {
    let end = this.#lines.length;
    while (end > 0 && this.#lines[end - 1]?.length === 0) end--;
    let from = all ? 0 : Math.max(0, end - mostLines);
    let size = 0;
    for (let n = end - 1; n >= from && !all; n--) {
      size += lengthOf(this.#lines[n] ?? []) + 1;
      if (size > mostBytes) from = Math.min(n + 1, end - 1);
    }
    const runs: Run[] = [];
    for (const [n, line] of this.#lines.slice(from, end).entries()) {
      if (n > 0) push(runs, { text: '\n' });
      for (const run of all ? line : tail(line)) push(runs, run);
    }
    const over = runs.length - mostRuns * (all ? 10 : 1);
    return { runs: over > 0 ? endOf(runs, over) : runs, hidden: from };
  }
}

/** Removes the looks of the first runs, so that the last runs, which show errors, keep theirs. */
function endOf(runs: readonly Run[], plain: number): Run[] {
  const text = runs.slice(0, plain).map((run) => run.text);
  return [{ text: text.join('') }, ...runs.slice(plain)];
}

function lengthOf(line: Line): number {
  return line.reduce((sum, run) => sum + run.text.length, 0);
}

/** Cuts the begin off a line that is too long. */
function tail(line: Line): Line {
  let over = lengthOf(line) - mostBytes;
  if (over <= 0) return line;
  const kept: Line = [];
  for (const run of line) {
    if (run.text.length > over) kept.push({ ...run, text: run.text.slice(Math.max(0, over)) });
    over -= run.text.length;
  }
  return kept;
}

/** Appends a run, and merges it with the run before where both look alike. */
function push(runs: Run[], run: Run): void {
  const last = runs.at(-1);
  if (last && last.look === run.look) runs[runs.length - 1] = { text: last.text + run.text, look: last.look };
  else runs.push(run);
}
