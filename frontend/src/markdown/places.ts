import { getContext, setContext } from 'svelte';

/** The files around a message. */
export interface Places {
  /** The absolute directories of the session. A relative path is searched in each, in this order. */
  readonly directories: readonly string[];
  /** The directory of the displayed file, to which its relative paths refer. */
  readonly base?: string | undefined;
  /** Returns those of some paths, at most 200, at which files exist. */
  existing: (paths: readonly string[]) => Promise<ReadonlySet<string>>;
  open: (path: string, line: number | undefined) => void;
  /** Opens a file in the person's editor. */
  edit?: (path: string, line: number | undefined) => void;
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

/** Opens a file as the pointer or key asks: beside the conversation, or with Ctrl (Cmd on a Mac) in the person's editor. */
export function openBy(
  event: Pick<MouseEvent, 'ctrlKey' | 'metaKey'>,
  places: Places,
  path: string,
  line: number | undefined,
): void {
  if ((event.ctrlKey || event.metaKey) && places.edit) places.edit(path, line);
  else places.open(path, line);
}
