/** Asks again and again while the page is seen, until the signal ends it: what is told by no event, such as what programs take. */
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
