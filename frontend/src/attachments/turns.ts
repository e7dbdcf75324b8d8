// Small pictures are asked for a few at a time: each is made of a whole photo, and in the window a request goes on that nobody wants any more.
// One that is wanted no longer when it is its turn is never asked for.

const most = 4;
let going = 0;
const waiting: (() => void)[] = [];

/** Asks when it is its turn. */
export async function inTurn<T>(signal: AbortSignal, ask: () => Promise<T>): Promise<T> {
  if (going < most) going++;
  else await new Promise<void>((go) => waiting.push(go));
  try {
    signal.throwIfAborted();
    return await ask();
  } finally {
    const next = waiting.shift();
    if (next) next();
    else going--;
  }
}
