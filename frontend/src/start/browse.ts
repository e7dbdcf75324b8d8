import type { Directory } from '../api/records';

// Splits the path in the directory picker into a directory to list and a prefix of a name.

interface Typed {
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

/** Returns a directory's path with a separator at the end. */
export function opened(path: string): string {
  const separator = separatorOf(path);
  return path.endsWith(separator) ? path : path + separator;
}

/** Returns a path without a separator at the end. */
export function closed(path: string): string {
  const separator = separatorOf(path);
  return path.length > 1 && path.endsWith(separator) && !/^[A-Za-z]:\\$/.test(path)
    ? path.slice(0, -1)
    : path;
}

/** Returns the names that match a prefix. Hidden names match only a prefix with a dot. */
export function matching(items: Directory['items'], prefix: string): Directory['items'] {
  const wanted = prefix.toLowerCase();
  return items.filter(
    (item) =>
      item.name.toLowerCase().startsWith(wanted) && (prefix.startsWith('.') || !item.name.startsWith('.')),
  );
}
