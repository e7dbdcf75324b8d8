import DOMPurify from 'dompurify';
import { renderToString } from 'katex';

// Draws formulas as MathML, which needs no fonts or styles and loads nothing. This file contains KaTeX and is loaded with the first visible
// formula.

const inert = document.implementation.createHTMLDocument();

const purifier = DOMPurify(window);
purifier.setConfig({
  USE_PROFILES: { mathMl: true },
  ADD_ATTR: ['class'],
  // Colours are the page's, in light and dark. A raised box could cover other text, so voffset is removed.
  FORBID_ATTR: ['href', 'xlink:href', 'style', 'id', 'mathcolor', 'mathbackground', 'voffset', 'width'],
  ALLOW_DATA_ATTR: false,
});

/** A space has its width, unless it would draw the text over what stands before it. */
purifier.addHook('uponSanitizeAttribute', (element, event) => {
  if (event.attrName !== 'width' || element.localName !== 'mspace') return;
  event.forceKeepAttr = /^\d{1,2}(?:\.\d+)?em$/.test(event.attrValue);
});

/** The code points where the mathematical alphabets begin: capitals, small letters, digits. A missing entry has no alphabet. */
const alphabets: Record<string, readonly [number?, number?, number?]> = {
  bold: [0x1d400, 0x1d41a, 0x1d7ce],
  'bold-italic': [0x1d468, 0x1d482],
  script: [0x1d49c, 0x1d4b6],
  fraktur: [0x1d504, 0x1d51e],
  'double-struck': [0x1d538, 0x1d552, 0x1d7d8],
  'sans-serif': [0x1d5a0, 0x1d5ba, 0x1d7e2],
  'bold-sans-serif': [0x1d5d4, 0x1d5ee, 0x1d7ec],
  monospace: [0x1d670, 0x1d68a, 0x1d7f6],
};
const elsewhere: Record<string, string> = Object.fromEntries(
  (
    'script:BℬEℰFℱHℋIℐLℒMℳRℛeℯgℊoℴ fraktur:CℭHℌIℑRℜZℨ double-struck:CℂHℍNℕPℙQℚRℝZℤ'
      .split(' ')
      .map((one) => one.split(':')) as [string, string][]
  ).flatMap(([name, letters]) =>
    Array.from({ length: letters.length / 2 }, (_, at) => [
      `${name} ${letters.charAt(2 * at)}`,
      letters.charAt(2 * at + 1),
    ]),
  ),
);

/** Maps letters to an alphabet's code points, because Chromium ignores mathvariant. */
function inAlphabet(text: string, name: string): string {
  const [capitals, small, digits] = alphabets[name] ?? [];
  return text.replace(/[A-Za-z0-9]/g, (letter) => {
    const from = /[A-Z]/.test(letter) ? capitals : /[a-z]/.test(letter) ? small : digits;
    const base = /[A-Z]/.test(letter) ? 65 : /[a-z]/.test(letter) ? 97 : 48;
    return (
      elsewhere[`${name} ${letter}`] ??
      (from === undefined ? letter : String.fromCodePoint(from + letter.charCodeAt(0) - base))
    );
  });
}

/** Converts KaTeX's output to MathML Core, which all engines draw. */
function inCore(math: Element): void {
  for (const one of math.querySelectorAll('annotation')) one.remove();
  for (const one of math.querySelectorAll('[mathvariant]')) {
    const name = one.getAttribute('mathvariant') ?? '';
    if (name === 'normal' || !(name in alphabets) || one.childElementCount > 0) continue;
    one.textContent = inAlphabet(one.textContent ?? '', name);
    one.removeAttribute('mathvariant');
  }
  for (const one of math.querySelectorAll('menclose')) {
    const row = one.ownerDocument.createElementNS(one.namespaceURI, 'mrow');
    row.setAttribute('class', /box/.test(one.getAttribute('notation') ?? '') ? 'boxed' : 'struck');
    row.append(...one.childNodes);
    one.replaceWith(row);
  }
  for (const table of math.querySelectorAll('mtable[columnalign]')) {
    const sides = (table.getAttribute('columnalign') ?? '').split(' ');
    for (const row of table.children) {
      [...row.children].forEach((cell, at) => {
        const side = sides[Math.min(at, sides.length - 1)];
        if (side === 'left' || side === 'right') cell.setAttribute('class', side);
      });
    }
  }
}

const drawn = new Map<string, string>();

/**
 * Returns a formula as MathML. It throws an error for invalid TeX. The size of macros and of boxes is limited; links, images and styles are
 * refused.
 */
export function draw(tex: string, display: boolean): string {
  const key = `${display ? 'd' : 'i'}${tex}`;
  const held = drawn.get(key);
  if (held !== undefined) return held;
  const host = inert.createElement('div');
  host.innerHTML = renderToString(tex, {
    output: 'mathml',
    displayMode: display,
    throwOnError: true,
    trust: false,
    strict: 'ignore',
    maxExpand: 300,
    maxSize: 12,
  });
  const math = host.querySelector('math');
  if (!math) throw new Error('no formula');
  inCore(math);
  host.replaceChildren(math);
  const made = purifier.sanitize(host.innerHTML);
  if (drawn.size >= 500) drawn.clear();
  drawn.set(key, made);
  return made;
}

// Copying gives the TeX source, because nobody can read MathML's plain text.

/** Returns the selected text with each formula as TeX; undefined where the selection has no formula. */
export function copied(selection: Selection): string | undefined {
  if (selection.rangeCount === 0 || selection.isCollapsed) return undefined;
  const range = selection.getRangeAt(0).cloneRange();
  // A partly selected formula is copied whole.
  const around = (node: Node) => (node instanceof Element ? node : node.parentElement)?.closest('.math');
  const first = around(range.startContainer);
  const last = around(range.endContainer);
  if (first) range.setStartBefore(first);
  if (last) range.setEndAfter(last);
  const part = range.cloneContents();
  const formulas = part.querySelectorAll('.math');
  if (formulas.length === 0) return undefined;
  for (const one of formulas) {
    const source = one.getAttribute('data-source') ?? '';
    one.replaceWith(one.localName === 'div' ? `\n${source}\n` : source);
  }
  for (const one of part.querySelectorAll('br')) one.replaceWith('\n');
  for (const one of part.querySelectorAll('p, li, tr, pre, h1, h2, h3, h4, h5, h6')) one.append('\n');
  return (part.textContent ?? '').replace(/\n{3,}/g, '\n\n').trim();
}

document.addEventListener('copy', (event) => {
  const selection = document.getSelection();
  const text = selection && !event.defaultPrevented ? copied(selection) : undefined;
  if (text === undefined || !event.clipboardData) return;
  event.clipboardData.setData('text/plain', text);
  event.preventDefault();
});
