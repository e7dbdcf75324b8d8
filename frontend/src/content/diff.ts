// Compares two texts by lines, and reads unified patches. Both give lines to show.

export type Line =
  | { kind: 'same'; before: number; after: number; text: string }
  | { kind: 'add'; after: number; text: string }
  | { kind: 'remove'; before: number; text: string }
  | { kind: 'gap'; hidden: number }
  | { kind: 'meta'; text: string };

export interface Diff {
  lines: Line[];
  added: number;
  removed: number;
  /** The texts differ too much for a comparison: all old lines are shown as removed, all new lines as added. */
  coarse: boolean;
}

/** The number of lines that are shown in a body that no person has opened. */
export const briefLines = 40;

const context = 3;
/** A comparison with more differing lines would block the window. */
const mostSteps = 1_500;

function split(text: string): string[] {
  if (text === '') return [];
  const lines = text.split('\n');
  if (lines.at(-1) === '') lines.pop();
  return lines;
}

type Edit = { kind: 'same' | 'add' | 'remove'; text: string };

/** Compares two texts by lines. around is the number of unchanged lines that are shown beside a change. */
export function diffTexts(before: string, after: string, around = context): Diff {
  const a = split(before);
  const b = split(after);
  let head = 0;
  while (head < a.length && head < b.length && a[head] === b[head]) head++;
  let tail = 0;
  while (
    tail < a.length - head &&
    tail < b.length - head &&
    a[a.length - 1 - tail] === b[b.length - 1 - tail]
  )
    tail++;

  const midA = a.slice(head, a.length - tail);
  const midB = b.slice(head, b.length - tail);
  const found = compare(midA, midB);
  const middle = found ?? [
    ...midA.map((text): Edit => ({ kind: 'remove', text })),
    ...midB.map((text): Edit => ({ kind: 'add', text })),
  ];
  const same = (text: string): Edit => ({ kind: 'same', text });
  const edits = [...a.slice(0, head).map(same), ...middle, ...a.slice(a.length - tail).map(same)];
  return { ...number(edits, around), coarse: found === undefined };
}

/** Myers' greedy algorithm. It returns undefined when the texts differ too much. */
function compare(a: string[], b: string[]): Edit[] | undefined {
  const most = Math.min(a.length + b.length, mostSteps);
  const offset = most + 1;
  const furthest = new Int32Array(2 * offset + 1);
  const trace: Int32Array[] = [];
  for (let d = 0; d <= most; d++) {
    trace.push(furthest.slice());
    for (let k = -d; k <= d; k += 2) {
      const down = k === -d || (k !== d && (furthest[offset + k - 1] ?? 0) < (furthest[offset + k + 1] ?? 0));
      let x = down ? (furthest[offset + k + 1] ?? 0) : (furthest[offset + k - 1] ?? 0) + 1;
      let y = x - k;
      while (x < a.length && y < b.length && a[x] === b[y]) {
        x++;
        y++;
      }
      furthest[offset + k] = x;
      if (x >= a.length && y >= b.length) return walk(a, b, trace, offset);
    }
  }
  return undefined;
}

function walk(a: string[], b: string[], trace: Int32Array[], offset: number): Edit[] {
  const edits: Edit[] = [];
  let x = a.length;
  let y = b.length;
  for (let d = trace.length - 1; d >= 0; d--) {
    const furthest = trace[d] ?? new Int32Array(0);
    const k = x - y;
    const down = k === -d || (k !== d && (furthest[offset + k - 1] ?? 0) < (furthest[offset + k + 1] ?? 0));
    const previousK = down ? k + 1 : k - 1;
    const previousX = d === 0 ? 0 : (furthest[offset + previousK] ?? 0);
    const previousY = previousX - (d === 0 ? 0 : previousK);
    while (x > previousX && y > previousY) {
      edits.push({ kind: 'same', text: a[x - 1] ?? '' });
      x--;
      y--;
    }
    if (d > 0) {
      if (down) edits.push({ kind: 'add', text: b[y - 1] ?? '' });
      else edits.push({ kind: 'remove', text: a[x - 1] ?? '' });
    }
    x = previousX;
    y = previousY;
  }
  return edits.reverse();
}

/** Numbers the lines, and folds lines that are far from a change. */
function number(edits: Edit[], around: number): { lines: Line[]; added: number; removed: number } {
  const nearChange = new Uint8Array(edits.length);
  edits.forEach((edit, index) => {
    if (edit.kind === 'same') return;
    nearChange.fill(1, Math.max(0, index - around), Math.min(edits.length, index + around + 1));
  });
  const lines: Line[] = [];
  let added = 0;
  let removed = 0;
  let before = 0;
  let after = 0;
  let hidden = 0;
  edits.forEach((edit, index) => {
    if (edit.kind !== 'add') before++;
    if (edit.kind !== 'remove') after++;
    if (!nearChange[index]) {
      hidden++;
      return;
    }
    if (hidden > 0) lines.push({ kind: 'gap', hidden });
    hidden = 0;
    if (edit.kind === 'same') lines.push({ kind: 'same', before, after, text: edit.text });
    else if (edit.kind === 'add') lines.push({ kind: 'add', after, text: edit.text });
    else lines.push({ kind: 'remove', before, text: edit.text });
    if (edit.kind === 'add') added++;
    if (edit.kind === 'remove') removed++;
  });
  if (hidden > 0) lines.push({ kind: 'gap', hidden });
  return { lines, added, removed };
}

const hunk = /^@@ -(\d+)(?:,\d+)? \+(\d+)(?:,\d+)? @@/;

/** Reads a unified patch in git's format. */
export function readPatch(text: string): Diff {
  const lines: Line[] = [];
  let added = 0;
  let removed = 0;
  let before = 0;
  let after = 0;
  let inHunk = false;
  for (const line of split(text)) {
    const start = hunk.exec(line);
    if (start) {
      before = Number(start[1]) - 1;
      after = Number(start[2]) - 1;
      inHunk = true;
      lines.push({ kind: 'meta', text: line });
    } else if (inHunk && line.startsWith('+')) {
      lines.push({ kind: 'add', after: ++after, text: line.slice(1) });
      added++;
    } else if (inHunk && line.startsWith('-')) {
      lines.push({ kind: 'remove', before: ++before, text: line.slice(1) });
      removed++;
    } else if (inHunk && (line.startsWith(' ') || line === '')) {
      lines.push({ kind: 'same', before: ++before, after: ++after, text: line.slice(1) });
    } else {
      inHunk = inHunk && line.startsWith('\\');
      if (!line.startsWith('index ')) lines.push({ kind: 'meta', text: line });
    }
  }
  return { lines, added, removed, coarse: false };
}
