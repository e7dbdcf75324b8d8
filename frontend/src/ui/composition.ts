// Keys of an input method. Enter, Escape, Tab, the arrows and letters that belong to the composition of a character (Japanese, Chinese,
// Korean and others) choose among candidates there, and must not send, rename, open or close anything here. One listener stops them before
// any part of the page hears of them, so that no field has to ask by itself. Nothing is prevented: the input method still gets its keys.

/** Whether a key belongs to a composition. Safari ends the composition before it tells of the key that has ended it, with the code 229. */
export function composing(event: KeyboardEvent): boolean {
  return event.isComposing || event.keyCode === 229;
}

/** The composition whose Escape was the last key. */
let escaped = false;

function key(event: KeyboardEvent): void {
  escaped = event.type === 'keydown' && event.key === 'Escape' && composing(event);
  // A terminal reads what is composed from its own field, and keeps the keys from everything around it.
  if (!composing(event) || (event.target instanceof Element && event.target.closest('[data-terminal]')))
    return;
  event.stopImmediatePropagation();
}

/** WebKit takes the Escape of a composition for a wish to close the dialog around the field. */
function cancel(event: Event): void {
  if (!escaped) return;
  escaped = false;
  event.preventDefault();
  event.stopImmediatePropagation();
}

/** Stops the keys of compositions at the window. It has to be called before any other listener of keys is added there; again does nothing. */
export function stopComposingKeys(of: Window): void {
  for (const type of ['keydown', 'keypress', 'keyup'] as const) of.addEventListener(type, key, true);
  of.addEventListener('cancel', cancel, true);
}
