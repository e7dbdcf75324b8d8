// Limits how many thumbnails are requested at a time. The server makes each from a whole photo, and the window's engine finishes requests
// that the page has aborted. A thumbnail that nobody needs any more is never requested.

const most = 4;
/** Milliseconds until a request is aborted. A disk that does not answer would hold up all other pictures. */
export const patience = 10_000;
let going = 0;
const waiting: (() => void)[] = [];

/** Calls ask when fewer than most requests are open. */
export async function inTurn<T>(signal: AbortSignal, ask: (late: AbortSignal) => Promise<T>): Promise<T> {
  if (going < most) going++;
  else await new Promise<void>((go) => waiting.push(go));
  const late = new AbortController();
  let had = true;
  const leave = () => {
    if (!had) return;
    had = false;
    const next = waiting.shift();
    if (next) next();
    else going--;
  };
  const timer = setTimeout(() => {
    late.abort();
    leave(); // the window's engine goes on with the request
  }, patience);
  try {
    signal.throwIfAborted();
    return await ask(late.signal);
  } finally {
    clearTimeout(timer);
    leave();
  }
}
