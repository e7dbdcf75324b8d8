/**
 * Repeats a call while the page is visible, for values without an event, such as the memory of processes. The returned function ends the
 * repetition.
 */
export function polled(ask: (signal: AbortSignal) => Promise<void>, every: number): () => void {
  const end = new AbortController();
  let timer: ReturnType<typeof setTimeout> | undefined;
  const turn = async () => {
    if (document.visibilityState === 'visible') await ask(end.signal);
    if (!end.signal.aborted) timer = setTimeout(() => void turn(), every);
  };
  void turn();
  return () => {
    end.abort();
    clearTimeout(timer);
  };
}
