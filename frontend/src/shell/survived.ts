import { store } from '../ui/storage';

// A session that crashes the page must not be opened again at each start. After two pages in a row that opened the session at their start
// and ended within a moment, the person must open the session.

const key = 'deskhand.opening';
/** Milliseconds after which the end of a page is not blamed on the session. */
const moment = 10_000;
const most = 2;

interface Opening {
  id: string;
  times: number;
}

function read(): Opening | undefined {
  try {
    const { id, times } = JSON.parse(localStorage.getItem(key) ?? '') as Partial<Opening>;
    return typeof id === 'string' && typeof times === 'number' ? { id, times } : undefined;
  } catch {
    return undefined;
  }
}

/** Reports whether the page may open a session at its start. Callers call mayOpen once per page. */
export function mayOpen(id: string): boolean {
  const before = read();
  const times = before?.id === id ? before.times : 0;
  const survived = () => localStorage.removeItem(key);
  if (times >= most) {
    survived();
    return false;
  }
  store(key, JSON.stringify({ id, times: times + 1 }));
  setTimeout(survived, moment);
  window.addEventListener('pagehide', survived, { once: true }); // the person left the page, or reloaded it
  return true;
}
