import { highlighter, languageOfPath, type Line } from '../markdown/highlight';
import { reveal } from './reveal';

// Lines of code with the colours of their language and the changed words marked, for differences. Invisible characters are revealed.

/** A part of a line, in UTF-16 units. */
export type Range = readonly [from: number, to: number];

/** Returns the colours of a line; undefined when the text is another since it was coloured. */
export function partsOf(line: Line | undefined, text: string): Line | undefined {
  if (!line) return undefined;
  const plain = text.endsWith('\r') ? text.slice(0, -1) : text;
  return line.map(([, piece]) => piece).join('') === plain ? line : undefined;
}

/** Parts the colours of a line where a changed word begins or ends. */
function parted(line: Line, changed: readonly Range[]): { kind: string; text: string; changed: boolean }[] {
  const parts: { kind: string; text: string; changed: boolean }[] = [];
  const borders = changed.flat();
  let at = 0;
  for (const [kind, piece] of line) {
    const end = at + piece.length;
    for (const to of [...borders.filter((one) => one > at && one < end), end]) {
      const inside = changed.some(([from, until]) => from <= at && to <= until);
      parts.push({
        kind,
        text: piece.slice(piece.length - (end - at), piece.length - (end - to)),
        changed: inside,
      });
      at = to;
    }
  }
  return parts;
}

/**
 * Returns an attachment that puts a line into its element. It creates the spans by hand, because components for a thousand lines are too
 * slow. Text is set as text, never as HTML. show reveals what is invisible in a line that has no colours, its end included.
 */
export function putLine(
  text: string,
  colours: Line | undefined,
  changed: readonly Range[] | undefined,
  show: (text: string) => string,
) {
  return (element: HTMLElement) => {
    if (!colours && !changed) {
      element.textContent = show(text) || ' ';
      return;
    }
    const plain = text.endsWith('\r') ? text.slice(0, -1) : text;
    const nodes: Node[] = parted(colours ?? [['', plain]], changed ?? []).map((part) => {
      if (part.kind === '' && !part.changed) return document.createTextNode(reveal(part.text));
      const span = document.createElement('span');
      span.className = part.changed ? `${part.kind} changed` : part.kind;
      span.textContent = reveal(part.text);
      return span;
    });
    const end = plain === text ? '' : show('\r');
    if (end !== '') nodes.push(document.createTextNode(end));
    if (nodes.length === 0) nodes.push(document.createTextNode(' '));
    element.replaceChildren(...nodes);
  };
}

interface Told {
  kind: string;
  text?: string;
}

/** Returns the colours of the lines of a difference; undefined for a file without a grammar. */
export async function coloursOf<T extends Told>(
  path: string,
  lines: readonly T[],
): Promise<ReadonlyMap<T, Line> | undefined> {
  const language = languageOfPath(path);
  if (!language) return undefined;
  const found = new Map<T, Line>();
  await Promise.all(
    (['remove', 'add'] as const).map(async (kind) => {
      // Lines of both sides take their colours from the new side.
      const side = lines.filter((line) => line.kind === kind || line.kind === 'same');
      if (!side.some((line) => line.kind === kind) && kind === 'remove') return;
      const painted = await highlighter.paint(side.map((line) => line.text ?? '').join('\n'), language);
      side.forEach((line, n) => {
        const colours = painted?.[n];
        if (colours && (line.kind === kind || kind === 'add')) found.set(line, colours);
      });
    }),
  );
  return found.size > 0 ? found : undefined;
}
