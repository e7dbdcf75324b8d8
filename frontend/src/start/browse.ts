import type { Directory } from '../api/records';

// The path that is typed in the browser's directory picker: a directory to list, and the beginning of a name in it.

export interface Typed {
  /** Ends without a separator, except for a root. */
  directory: string;
  prefix: string;
}

function separatorOf(path: string): string {
  return /^[A-Za-z]:\\|^\\\\/.test(path) ? '\\' : '/';
}

export function readTyped(text: string, home: string): Typed {
  const path = text === '~' || text.startsWith('~/') ? home + text.slice(1) : text;
  const separator = separatorOf(path);
  const at = path.lastIndexOf(separator);
  if (at < 0) return { directory: home, prefix: path };
  const directory = path.slice(0, at);
  const root = directory === '' || /^[A-Za-z]:$/.test(directory);
  return { directory: root ? path.slice(0, at + 1) : directory, prefix: path.slice(at + 1) };
}

/** The path of a directory with the separator that lets its names follow. */
export function opened(path: string): string {
  const separator = separatorOf(path);
  return path.endsWith(separator) ? path : path + separator;
}

/** Without the separator at the end, as it is handed on. */
export function closed(path: string): string {
  const separator = separatorOf(path);
  return path.length > 1 && path.endsWith(separator) && !/^[A-Za-z]:\\$/.test(path)
    ? path.slice(0, -1)
    : path;
}

/** The names that fit what is typed. Hidden ones are shown to whoever types the dot. */
export function matching(items: Directory['items'], prefix: string): Directory['items'] {
  const wanted = prefix.toLowerCase();
  return items.filter(
    (item) =>
      item.name.toLowerCase().startsWith(wanted) && (prefix.startsWith('.') || !item.name.startsWith('.')),
  );
}
