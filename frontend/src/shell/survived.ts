import { store } from '../ui/storage';

// A conversation that takes the page down with it must not do so at each start: what was opened by itself twice in a row, in pages that ended
// before they had lived for a moment, is left to the person.

const key = 'deskhand.opening';
/** A page that lives so long has not ended because of what it opened. */
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

/** Whether a conversation may be opened by itself as the page begins. To be asked once a page. */
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
  window.addEventListener('pagehide', survived, { once: true }); // it was left, or loaded anew
  return true;
}
