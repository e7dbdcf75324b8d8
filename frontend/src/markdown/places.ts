import { getContext, setContext } from 'svelte';

/** What stands around an answer. */
export interface Places {
  /** The directories of the conversation, absolute; a relative path is looked for in each, in this order. */
  readonly directories: readonly string[];
  /** The directory of the file that is shown: what a relative path in it begins at. */
  readonly base?: string | undefined;
  /** Whether a file is there. */
  exists: (path: string) => Promise<boolean>;
  open: (path: string, line: number | undefined) => void;
}

const key = Symbol('places');

export function providePlaces(places: Places): void {
  setContext(key, places);
}

/** Nothing where no file can be opened. */
export function placesHere(): Places | undefined {
  return getContext<Places | undefined>(key);
}
