// Keys of input methods (Japanese, Chinese, Korean and others). While a character is composed, Enter, Escape, Tab, arrows and letters
// choose among candidates and must not act on the page. A listener at the window stops them before any other listener, so that no field has
// to check. The listener prevents no default: the input method still gets its keys.

/**
 * Reports whether a key belongs to a composition. Safari ends the composition before the keydown event of its last key, which has the code
 * 229.
 */
export function composing(event: KeyboardEvent): boolean {
  return event.isComposing || event.keyCode === 229;
}

/** The last key was the Escape of a composition. */
let escaped = false;

function key(event: KeyboardEvent): void {
  escaped = event.type === 'keydown' && event.key === 'Escape' && composing(event);
  // A terminal reads compositions from its own field, and stops the keys itself.
  if (!composing(event) || (event.target instanceof Element && event.target.closest('[data-terminal]')))
    return;
  event.stopImmediatePropagation();
}

/** WebKit takes the Escape of a composition as a request to close the surrounding dialog. */
function cancel(event: Event): void {
  if (!escaped) return;
  escaped = false;
  event.preventDefault();
  event.stopImmediatePropagation();
}

/**
 * Registers the listener. Callers must call stopComposingKeys before other key listeners are added to the window; a second call has no
 * effect.
 */
export function stopComposingKeys(of: Window): void {
  for (const type of ['keydown', 'keypress', 'keyup'] as const) of.addEventListener(type, key, true);
  of.addEventListener('cancel', cancel, true);
}
