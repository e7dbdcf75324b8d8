import { getContext, setContext } from 'svelte';

/** A file as it is, before it is written. */
export interface Seen {
  /** The version of the file, which a write names. */
  readonly version: string;
  /** The whole text; undefined for a file that is no text, or too large. */
  readonly text: string | undefined;
}

/** Writes files of the session's directories. */
export interface Writing {
  /** Returns undefined where there is no such file. */
  read: (path: string) => Promise<Seen | undefined>;
  /**
   * Writes a text over the version that was seen, or as a new file, and returns the version after that. It rejects when the file is not as it
   * was seen, which isOther tells from other failures; then nothing was written.
   */
  write: (path: string, text: string, over: string | undefined) => Promise<string>;
  isOther: (thrown: unknown) => boolean;
}

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
  /** Fetches a picture of the web. */
  webPicture?: (address: string, signal: AbortSignal) => Promise<Blob>;
  /** Absent where a text may not offer to write files. */
  readonly writing?: Writing | undefined;
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
