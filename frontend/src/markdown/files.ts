import { linksIn } from '../content/linkify';
import { codeRef, lookupOf } from './lookup';
import type { Places } from './places';

// Makes links of the files that a rendered text names, in inline code and in its words.

/** The largest number of files of a part of a text that are looked up. */
const most = 300;
const linked = 'a, button, code, pre, .math, .path';

/** Names the file of an element, which is then opened as a link is. */
function name(element: HTMLElement, path: string, line: number | undefined): void {
  element.classList.add('there');
  element.role = 'link';
  element.tabIndex = 0;
  element.dataset['file'] = path;
  if (line !== undefined) element.dataset['line'] = String(line);
}

function textsIn(element: HTMLElement): Text[] {
  const texts: Text[] = [];
  const walker = document.createTreeWalker(element, NodeFilter.SHOW_TEXT);
  for (let node = walker.nextNode(); node; node = walker.nextNode())
    if (node instanceof Text && !node.parentElement?.closest(linked)) texts.push(node);
  return texts;
}

/** Links the files that exist. The returned function ends that. */
export function linkFiles(element: HTMLElement, places: Places): () => void {
  let ended = false;
  let left = most;
  const lookup = lookupOf(places);
  for (const code of element.querySelectorAll('code')) {
    const ref = code.closest('pre, a, .math') ? undefined : codeRef(code.textContent ?? '');
    if (!ref || left-- <= 0) continue;
    void lookup.find(ref).then((path) => {
      if (!ended && path !== undefined) name(code, path, ref.line);
    });
  }
  for (const text of textsIn(element)) {
    const links = linksIn(text.data).slice(0, Math.max(0, left));
    left -= links.length;
    if (links.length === 0) continue;
    void Promise.all(links.map((link) => lookup.find(link))).then((paths) => {
      if (ended || !text.isConnected) return;
      // From the last one on, so that what is before keeps its place.
      for (const [n, { start, end, line }] of [...links.entries()].reverse()) {
        const path = paths[n];
        if (path === undefined) continue;
        const named = text.splitText(start);
        named.splitText(end - start);
        const link = document.createElement('a');
        name(link, path, line);
        named.replaceWith(link);
        link.append(named);
      }
    });
  }
  return () => (ended = true);
}
