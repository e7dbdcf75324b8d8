// Small pictures are asked for a few at a time: each is made of a whole photo, and in the window a request goes on that nobody wants any more.
// One that is wanted no longer when it is its turn is never asked for.

const most = 4;
/** A picture on a disk that does not answer holds up the others for so long, in milliseconds. Then its request is ended. */
export const patience = 10_000;
let going = 0;
const waiting: (() => void)[] = [];

/** Asks when it is its turn. */
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
    leave(); // in the window the request goes on
  }, patience);
  try {
    signal.throwIfAborted();
    return await ask(late.signal);
  } finally {
    clearTimeout(timer);
    leave();
  }
}
