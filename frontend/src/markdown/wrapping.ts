import { store } from '../ui/storage';

// Whether long lines of code wrap: one switch for all blocks, which is remembered. The style sheet reads it at the root element, since a
// block may be HTML that was rendered long ago.

const key = 'deskhand.code.wrap';
const root = document.documentElement;
root.toggleAttribute('data-wrap-code', localStorage.getItem(key) === 'yes');

/** A longer line may not fit into the column. */
const fits = 90;
const longLine = new RegExp(`[^\\n]{${fits + 1}}`);

export function hasLongLine(code: string): boolean {
  return longLine.test(code);
}

export function wraps(): boolean {
  return root.hasAttribute('data-wrap-code');
}

/** Turns the switch, of which every block shows the state. */
export function turnWrapping(): void {
  const on = root.toggleAttribute('data-wrap-code');
  store(key, on ? 'yes' : 'no');
  for (const button of document.querySelectorAll('button[data-wrap]'))
    button.setAttribute('aria-pressed', String(on));
}
