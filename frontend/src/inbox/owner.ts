import { getContext, setContext } from 'svelte';

// Whose request a card shows, where cards of several sessions stand on the screen together.

const key = Symbol('owner');

/** Names the session for the cards below a component. */
export function provideOwner(name: () => string): void {
  setContext(key, name);
}

/** Returns the name of the session; undefined where a single card is shown. */
export function ownerHere(): (() => string) | undefined {
  return getContext<(() => string) | undefined>(key);
}
