// Stores values typed into a waiting request. They survive the card and a reload of the page, and end with the request. Only this window
// has them: before the answer nothing is sent.

const prefix = 'deskhand.typed.';

type Store = Pick<Storage, 'getItem' | 'setItem' | 'removeItem' | 'key' | 'length'>;

/** Storage may be forbidden in a browser. Then a card begins empty. */
function attempt<T>(what: () => T, otherwise: T): T {
  try {
    return what();
  } catch {
    return otherwise;
  }
}

export function keepTyped(request: string, typed: unknown, store: Store = sessionStorage): void {
  attempt(() => store.setItem(prefix + request, JSON.stringify(typed)), undefined);
}

/** Returns the stored values; undefined when there are none, or none that can be read. */
export function keptTyped(request: string, store: Store = sessionStorage): unknown {
  return attempt(() => JSON.parse(store.getItem(prefix + request) ?? 'null') as unknown, null) ?? undefined;
}

export function forgetTyped(request: string, store: Store = sessionStorage): void {
  attempt(() => store.removeItem(prefix + request), undefined);
}

/** Removes the stored values of all requests that no longer wait. */
export function forgetTypedBut(waiting: ReadonlySet<string>, store: Store = sessionStorage): void {
  const keys = attempt(() => Array.from({ length: store.length }, (_, at) => store.key(at)), []);
  for (const key of keys) {
    if (key?.startsWith(prefix) && !waiting.has(key.slice(prefix.length))) store.removeItem(key);
  }
}
