// Small pictures are asked for a few at a time: each is made of a whole photo, and in the window a request goes on that nobody wants any more.
// One that is wanted no longer when it is its turn is never asked for.

const most = 4;
/** A picture on a disk that does not answer holds up the others for so long, in milliseconds. */
const patience = 10_000;
let going = 0;
const waiting: (() => void)[] = [];

/** Asks when it is its turn. */
export async function inTurn<T>(signal: AbortSignal, ask: () => Promise<T>): Promise<T> {
  if (going < most) going++;
  else await new Promise<void>((go) => waiting.push(go));
  let had = true;
  const leave = () => {
    clearTimeout(late);
    if (!had) return;
    had = false;
    const next = waiting.shift();
    if (next) next();
    else going--;
  };
  const late = setTimeout(leave, patience);
  try {
    signal.throwIfAborted();
    return await ask();
  } finally {
    leave();
  }
}
