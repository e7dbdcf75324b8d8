import { spansIn, type Term } from './words';

// Marks matches in the page without changing the text nodes, which belong to Svelte and change while an agent writes.

/** Elements whose text continues in their neighbours. */
const inline = new Set(['A', 'B', 'CODE', 'DEL', 'EM', 'I', 'MARK', 'S', 'STRONG', 'SUB', 'SUP', 'U']);
const unread = 'svg, style, time, .visually-hidden';

interface Piece {
  node: Text;
  /** The offset of the piece in the whole text. */
  at: number;
}

/** Returns the matches below an element. */
export function rangesIn(root: Element, terms: readonly Term[]): Range[] {
  const pieces: Piece[] = [];
  let whole = '';
  let block: Element | undefined;
  const walker = document.createTreeWalker(root, NodeFilter.SHOW_TEXT);
  for (let node = walker.nextNode(); node; node = walker.nextNode()) {
    const parent = node.parentElement;
    if (!(node instanceof Text) || !parent || parent.closest(unread)) continue;
    const here = blockOf(parent);
    // A word ends with its block element.
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

/** Returns the piece that contains an offset of the whole text. */
function pieceAt(pieces: readonly Piece[], place: number): Piece {
  let low = 0;
  let high = pieces.length - 1;
  while (low < high) {
    const middle = (low + high + 1) >> 1;
    if ((pieces[middle]?.at ?? 0) <= place) low = middle;
    else high = middle - 1;
  }
  return pieces[low] as Piece; // every offset lies in a piece
}

/** A mark drawn over the text, for engines that cannot colour a range. Coordinates count from the content's corner. */
export interface Box {
  left: number;
  top: number;
  width: number;
  height: number;
  current: boolean;
}

type Mark = 'hit' | 'current' | undefined;

const name = 'deskhand-find';
const currentName = 'deskhand-find-current';
/** The longest delay of marks in milliseconds while an agent writes or a person scrolls. */
const every = 120;

/** Reports whether the engine can colour ranges. */
function hasHighlights(): boolean {
  return typeof Highlight === 'function' && 'highlights' in CSS;
}

interface Marking {
  terms: readonly Term[];
  /** Returns the marks of a row. */
  mark: (row: HTMLElement) => Mark;
}

/** Keeps the matches near the visible rows marked. The returned function ends that. */
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
    // Changes of the drawn marks themselves are ignored.
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
