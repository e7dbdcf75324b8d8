import type { Line } from './highlight';

/** Adds the nodes of a coloured line, and returns its length. Elements are made by hand: HTML would have to be sanitized. */
export function putLine(line: Line, nodes: Node[]): number {
  let length = 1;
  let text = '';
  for (const [kind, piece] of line) {
    length += piece.length;
    if (kind === '') {
      text += piece;
      continue;
    }
    if (text !== '') nodes.push(document.createTextNode(text));
    text = '';
    const span = document.createElement('span');
    span.className = kind;
    span.textContent = piece;
    nodes.push(span);
  }
  nodes.push(document.createTextNode(`${text}\n`));
  return length;
}
