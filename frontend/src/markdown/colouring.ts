import { longest, type CodeStream, type Highlighter, type Line } from './highlight';
import { linesOfPage } from './pages';

// Colours a block of code page by page, and line by line while the block grows. The worker keeps the grammar's state between two pieces, so
// that a line is read once, however long the block gets. An unfinished line stays plain: its colours would change with every letter.

/** Coloured lines by page. An unchanged page is the same array. */
export type Pages = readonly (readonly Line[])[];

/** The number of lines that are coloured in a frame: hundreds do not fit. */
const perFrame = linesOfPage;

export class Colouring {
  readonly #painter: Pick<Highlighter, 'paint' | 'stream'>;
  readonly #language: string;
  readonly #tell: (pages: Pages) => void;
  #stream: CodeStream | undefined;
  /** The text that was given to the stream: whole lines, each with its end. */
  #given = '';
  #wanted = '';
  #waits = false;
  #lines: Line[] = [];
  #shown = 0;
  #pages: Pages = [];
  #draws = false;
  #closed = false;
  /** Counts the beginnings: an answer to an earlier one is of no use. */
  #round = 0;

  constructor(
    painter: Pick<Highlighter, 'paint' | 'stream'>,
    language: string,
    tell: (pages: Pages) => void,
  ) {
    this.#painter = painter;
    this.#language = language;
    this.#tell = tell;
  }

  /** Gives the text of the block so far; ended means that no more comes. */
  say(text: string, ended: boolean): void {
    if (ended && !this.#stream) {
      this.#again();
      const round = this.#round;
      void this.#painter.paint(text, this.#language).then((lines) => this.#take(round, lines));
      return;
    }
    const whole = ended ? `${text}\n` : text.slice(0, text.lastIndexOf('\n') + 1);
    if (!whole.startsWith(this.#given)) this.#again();
    if (whole.length > longest) return;
    this.#wanted = whole;
    this.#ask();
  }

  close(): void {
    this.#closed = true;
    this.#stream?.close();
  }

  #again(): void {
    this.#stream?.close();
    this.#stream = undefined;
    this.#given = '';
    this.#waits = false;
    this.#lines = [];
    this.#shown = 0;
    this.#round++;
    if (this.#pages.length > 0) this.#tell((this.#pages = []));
  }

  #ask(): void {
    if (this.#waits || this.#wanted.length === this.#given.length) return;
    this.#stream ??= this.#painter.stream(this.#language);
    const more = this.#wanted.slice(this.#given.length, -1);
    this.#given = this.#wanted;
    this.#waits = true;
    const round = this.#round;
    void this.#stream.next(more).then((lines) => {
      if (round !== this.#round) return;
      this.#waits = lines === undefined; // without colours there is nothing more to ask for
      this.#take(round, lines);
      if (lines) this.#ask();
    });
  }

  #take(round: number, lines: readonly Line[] | undefined): void {
    if (this.#closed || !lines || round !== this.#round) return;
    this.#lines.push(...lines);
    if (!this.#draws) this.#draw();
  }

  #draw(): void {
    this.#draws = this.#shown < this.#lines.length && !this.#closed;
    if (!this.#draws) return;
    const first = Math.floor(this.#shown / linesOfPage);
    this.#shown = Math.min(this.#lines.length, this.#shown + perFrame);
    const pages = this.#pages.slice(0, first);
    for (let at = first * linesOfPage; at < this.#shown; at += linesOfPage)
      pages.push(this.#lines.slice(at, Math.min(at + linesOfPage, this.#shown)));
    this.#tell((this.#pages = pages));
    requestAnimationFrame(() => this.#draw());
  }
}
