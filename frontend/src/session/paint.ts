/** Adds a mark to the page's performance timeline after the next paint, for measurements. */
export function markPaint(name: string): void {
  requestAnimationFrame(() =>
    setTimeout(() => {
      performance.clearMarks(name);
      performance.mark(name);
    }),
  );
}
