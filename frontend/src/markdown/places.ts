import { getContext, setContext } from 'svelte';

/** The files around a message. */
export interface Places {
  /** The absolute directories of the session. A relative path is searched in each, in this order. */
  readonly directories: readonly string[];
  /** The directory of the displayed file, to which its relative paths refer. */
  readonly base?: string | undefined;
  /** Reports whether a file exists. */
  exists: (path: string) => Promise<boolean>;
  open: (path: string, line: number | undefined) => void;
  /** Fetches a file that is shown as a picture. */
  picture?: (path: string, signal: AbortSignal) => Promise<Blob>;
}

const key = Symbol('places');

export function providePlaces(places: Places): void {
  setContext(key, places);
}

/** Returns undefined where files cannot be opened. */
export function placesHere(): Places | undefined {
  return getContext<Places | undefined>(key);
}
