/** How long a call may take before it counts as lost: as long as the held request, which takes 25 s by itself. */
export const giveUpAfter = 40_000;

/** The signal of a call that takes as long as it takes: nothing ends it. */
export function unlimited(): AbortSignal {
  return new AbortController().signal;
}

/**
 * Runs a call with a signal that ends it: when the time is over, or when an outer signal does. By hand and not by
 * AbortSignal.any, which the oldest engines that we build for do not have.
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

/** How long to wait before the next try: after each failure in a row twice as long, up to the longest. */
export function backOff(failures: number, longest: number): number {
  return Math.min(firstPause * 2 ** failures, longest);
}
