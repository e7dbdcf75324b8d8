import { linksIn, type Link } from '../content/linkify';
import { dress } from './dress';
import { highlighter } from './highlight';
import { codeRef, lookupOf, type Lookup } from './lookup';
import type { Places } from './places';

// Makes links of the files that a rendered text names: in inline code, in blocks of code, and in its words.

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

interface Placed {
  readonly start: number;
  readonly end: number;
  readonly path: string;
  readonly line: number | undefined;
}

/** Returns those links of a text whose files exist. */
async function existing(links: readonly Link[], lookup: Lookup): Promise<Placed[]> {
  const paths = await Promise.all(links.map((link) => lookup.find(link)));
  return links.flatMap(({ start, end, line }, n) => {
    const path = paths[n];
    return path === undefined ? [] : [{ start, end, path, line }];
  });
}

/** Puts links around parts of a code, whose pieces keep their colours. */
function wrap(code: Element, links: readonly Placed[]): void {
  const ranges = links.map((link) => ({ link, range: document.createRange() }));
  const walker = document.createTreeWalker(code, NodeFilter.SHOW_TEXT);
  let at = 0;
  for (let node = walker.nextNode() as Text | null; node; node = walker.nextNode() as Text | null) {
    const next = at + node.length;
    for (const { link, range } of ranges) {
      if (link.start >= at && link.start < next) range.setStart(node, link.start - at);
      if (link.end > at && link.end <= next) range.setEnd(node, link.end - at);
    }
    at = next;
  }
  for (const { link, range } of ranges) {
    const element = document.createElement('a');
    name(element, link.path, link.line);
    element.append(range.extractContents());
    range.insertNode(element);
  }
}

/** Links the files in blocks of code: in the pages of one, or in a whole one that is HTML. */
function linkBlocks(element: HTMLElement, lookup: Lookup, left: number, ended: () => boolean): () => void {
  const dressed: Element[] = [];
  const all = [...element.querySelectorAll('pre code .page, pre code')];
  for (const code of all.filter((one) => !one.querySelector('.page') && !one.closest('.math'))) {
    const text = code.textContent ?? '';
    const links = linksIn(text).slice(0, Math.max(0, left));
    left -= links.length;
    if (links.length === 0) continue;
    const language = code instanceof HTMLElement ? code.dataset['language'] : undefined;
    // HTML gets its colours by the same call, and before what is done here.
    const painted = language && highlighter.paint(text.replace(/\n$/, ''), language);
    void Promise.all([existing(links, lookup), painted]).then(([placed]) => {
      if (ended() || placed.length === 0) return;
      const put = (page: Element) => page.textContent === text && wrap(page, placed);
      if (dress(code, put)) dressed.push(code);
      else put(code);
    });
  }
  return () => dressed.forEach((code) => dress(code, undefined));
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
    void existing(links, lookup).then((placed) => {
      if (ended || !text.isConnected) return;
      // From the last one on, so that what is before keeps its place.
      for (const { start, end, path, line } of placed.reverse()) {
        const named = text.splitText(start);
        named.splitText(end - start);
        const link = document.createElement('a');
        name(link, path, line);
        named.replaceWith(link);
        link.append(named);
      }
    });
  }
  const undress = linkBlocks(element, lookup, left, () => ended);
  return () => {
    ended = true;
    undress();
  };
}
