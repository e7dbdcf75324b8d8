import { highlighter } from './highlight';
import { putLine } from './lines';

/** Adds colours to code within lists and quotations, which is HTML and no component. The returned function ends that. */
export function colourBoxes(element: HTMLElement): () => void {
  let ended = false;
  for (const box of element.querySelectorAll<HTMLElement>('code[data-language]')) {
    const text = (box.textContent ?? '').replace(/\n$/, '');
    void highlighter.paint(text, box.dataset['language'] ?? '').then((lines) => {
      if (ended || !lines) return;
      const nodes: Node[] = [];
      for (const line of lines) putLine(line, nodes);
      box.replaceChildren(...nodes);
    });
  }
  return () => (ended = true);
}
