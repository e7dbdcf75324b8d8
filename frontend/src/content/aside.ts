import { getContext, setContext } from 'svelte';

// Lets entries of a transcript open something beside the transcript. The component that shows the transcript provides the functions.

interface Aside {
  /** Opens a text that is too long for its row. */
  output: (title: string, text: string) => void;
  terminal: (id: string) => void;
}

const key = Symbol('aside');

export function provideAside(aside: Aside): void {
  setContext(key, aside);
}

/** Returns undefined where the page has no room beside the transcript. */
export function aside(): Aside | undefined {
  return getContext<Aside | undefined>(key);
}
