import { getContext, setContext } from 'svelte';

// What stands in a transcript may open something beside it: whoever shows a transcript says how.

export interface Aside {
  /** Text that is too long for its row. */
  output: (title: string, text: string) => void;
  /** The program of a terminal, by its id. */
  terminal: (id: string) => void;
  file: (path: string, line?: number) => void;
}

const key = Symbol('aside');

export function provideAside(aside: Aside): void {
  setContext(key, aside);
}

/** Nothing where there is no room beside what is shown. */
export function aside(): Aside | undefined {
  return getContext<Aside | undefined>(key);
}
