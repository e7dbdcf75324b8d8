import { spansIn, type Term } from './words';

// Shows in the page what was found. The text itself is left alone: it is Svelte's, and changes while an agent writes.

/** Elements whose text goes on in their neighbours'. */
const inline = new Set(['A', 'B', 'CODE', 'DEL', 'EM', 'I', 'MARK', 'S', 'STRONG', 'SUB', 'SUP', 'U']);
const unread = 'svg, style, time, .visually-hidden';

interface Piece {
  node: Text;
  /** Where it begins in the whole text. */
  at: number;
}

/** The places of what is looked for below an element. */
export function rangesIn(root: Element, terms: readonly Term[]): Range[] {
  const pieces: Piece[] = [];
  let whole = '';
  let block: Element | undefined;
  const walker = document.createTreeWalker(root, NodeFilter.SHOW_TEXT);
  for (let node = walker.nextNode(); node; node = walker.nextNode()) {
    const parent = node.parentElement;
    if (!(node instanceof Text) || !parent || parent.closest(unread)) continue;
    const here = blockOf(parent);
    // Words end with the element that they stand in.
    if (here !== block) whole += '\n';
    block = here;
    pieces.push({ node, at: whole.length });
    whole += node.data;
  }
  return spansIn(whole, terms).map(({ start, end }) => {
    const range = document.createRange();
    const first = pieceAt(pieces, start);
    const last = pieceAt(pieces, end - 1);
    range.setStart(first.node, start - first.at);
    range.setEnd(last.node, end - last.at);
    return range;
  });
}

function blockOf(element: Element): Element {
  let block = element;
  while (inline.has(block.tagName) && block.parentElement) block = block.parentElement;
  return block;
}

/** The piece that a place of the whole text is in. */
function pieceAt(pieces: readonly Piece[], place: number): Piece {
  let low = 0;
  let high = pieces.length - 1;
  while (low < high) {
    const middle = (low + high + 1) >> 1;
    if ((pieces[middle]?.at ?? 0) <= place) low = middle;
    else high = middle - 1;
  }
  return pieces[low] as Piece; // a place was found in one of them
}

/** A mark drawn over the text, where the engine cannot colour a range. Measured from the content's own corner. */
export interface Box {
  left: number;
  top: number;
  width: number;
  height: number;
  current: boolean;
}

export type Mark = 'hit' | 'current' | undefined;

const name = 'deskhand-find';
const currentName = 'deskhand-find-current';
/** While an agent writes, and while the person scrolls, marks may be this late. */
const every = 120;

/** Whether the engine colours ranges. */
export function hasHighlights(): boolean {
  return typeof Highlight === 'function' && 'highlights' in CSS;
}

export interface Marking {
  terms: readonly Term[];
  /** What a row holds. */
  mark: (row: HTMLElement) => Mark;
}

/** Keeps what was found marked in the rows near the part that is seen. The returned function ends it. */
export function marking(
  scroller: HTMLElement,
  content: HTMLElement,
  wanted: () => Marking,
  draw: (boxes: readonly Box[]) => void,
): { now: () => void; end: () => void } {
  let timer: ReturnType<typeof setTimeout> | undefined;
  const now = () => {
    clearTimeout(timer);
    timer = undefined;
    const { terms, mark } = wanted();
    const frame = scroller.getBoundingClientRect();
    const hits: Range[] = [];
    const current: Range[] = [];
    for (const row of content.children) {
      if (!(row instanceof HTMLElement) || row.dataset['row'] === undefined) continue;
      const box = row.getBoundingClientRect();
      if (box.bottom < frame.top - frame.height || box.top > frame.bottom + frame.height) continue;
      const kind = mark(row);
      if (kind) (kind === 'current' ? current : hits).push(...rangesIn(row, terms));
    }
    if (hasHighlights()) {
      CSS.highlights.set(name, new Highlight(...hits));
      CSS.highlights.set(currentName, new Highlight(...current));
    } else {
      draw([...boxes(content, hits, false), ...boxes(content, current, true)]);
    }
  };
  const soon = () => (timer ??= setTimeout(now, every));
  const changes = new MutationObserver((records) => {
    // Boxes of ours are no news.
    if (records.some((record) => !(record.target as Element).closest?.('[data-marks]'))) soon();
  });
  changes.observe(content, { childList: true, characterData: true, subtree: true });
  scroller.addEventListener('scroll', soon, { passive: true });
  return {
    now,
    end: () => {
      clearTimeout(timer);
      changes.disconnect();
      scroller.removeEventListener('scroll', soon);
      if (hasHighlights()) {
        CSS.highlights.delete(name);
        CSS.highlights.delete(currentName);
      } else draw([]);
    },
  };
}

function boxes(content: HTMLElement, ranges: readonly Range[], current: boolean): Box[] {
  const corner = content.getBoundingClientRect();
  return ranges.flatMap((range) =>
    Array.from(range.getClientRects(), ({ left, top, width, height }) => ({
      left: left - corner.left,
      top: top - corner.top,
      width,
      height,
      current,
    })),
  );
}
