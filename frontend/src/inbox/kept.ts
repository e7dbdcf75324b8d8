// What was typed into a request that still waits. It outlives the card, whenever that is taken from the screen, and a reload of the page;
// it ends with the request. Only this window has it: nothing of it is sent before it is an answer.

const prefix = 'deskhand.typed.';

type Store = Pick<Storage, 'getItem' | 'setItem' | 'removeItem' | 'key' | 'length'>;

/** Whether something can be kept is not for every browser certain; without it, a card begins anew. */
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

/** What was kept; undefined when there is nothing, or nothing that can be read. */
export function keptTyped(request: string, store: Store = sessionStorage): unknown {
  return attempt(() => JSON.parse(store.getItem(prefix + request) ?? 'null') as unknown, null) ?? undefined;
}

export function forgetTyped(request: string, store: Store = sessionStorage): void {
  attempt(() => store.removeItem(prefix + request), undefined);
}

/** Forgets what was typed into any request but these: the others ended while nobody looked. */
export function forgetTypedBut(waiting: ReadonlySet<string>, store: Store = sessionStorage): void {
  const keys = attempt(() => Array.from({ length: store.length }, (_, at) => store.key(at)), []);
  for (const key of keys) {
    if (key?.startsWith(prefix) && !waiting.has(key.slice(prefix.length))) store.removeItem(key);
  }
}
