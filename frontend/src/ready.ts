// Prepares the page for the first answer: the renderer of Markdown is warmed up, and the parts of a turn's end are fetched. Without the
// latter the frame of the end took 50 ms in WebKit.

export function makeReady(): void {
  // The components that need these files load them again, and report a failure.
  void import('./markdown/warm').then(({ warm }) => warm()).catch(() => undefined);
  void import('./changes/footer').catch(() => undefined);
  void import('./composer/Queue.svelte').catch(() => undefined);
  // Keys typed after a shortcut belong to the part that the shortcut opens, so these parts are loaded early too.
  void import('./session/finding').catch(() => undefined);
  void import('./start/Start.svelte').catch(() => undefined);
  void import('./content/pixels').catch(() => undefined);
}
