/** The time limit of a call in milliseconds. A held request alone takes up to 25 s. */
export const giveUpAfter = 40_000;

/** Returns a signal that never ends its call. */
export function unlimited(): AbortSignal {
  return new AbortController().signal;
}

/**
 * Runs a call with a signal that aborts after ms, or when the outer signal does. AbortSignal.any would do the same, but the oldest
 * supported engines lack it.
 */
export async function limited<T>(
  call: (signal: AbortSignal) => Promise<T>,
  outer?: AbortSignal,
  ms = giveUpAfter,
): Promise<T> {
  const limit = new AbortController();
  const end = () => limit.abort(outer?.reason);
  const timer = setTimeout(() => limit.abort(new DOMException('No answer', 'TimeoutError')), ms);
  if (outer?.aborted) end();
  outer?.addEventListener('abort', end);
  try {
    return await call(limit.signal);
  } finally {
    clearTimeout(timer);
    outer?.removeEventListener('abort', end);
  }
}

const firstPause = 250;

/** Returns the pause before the next try, which doubles with each failure in a row up to longest. */
export function backOff(failures: number, longest: number): number {
  return Math.min(firstPause * 2 ** failures, longest);
}
