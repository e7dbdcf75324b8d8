/** Marks the moment after the next paint in the page's timeline, where whoever measures the app finds it. */
export function markPaint(name: string): void {
  requestAnimationFrame(() =>
    setTimeout(() => {
      performance.clearMarks(name);
      performance.mark(name);
    }),
  );
}
