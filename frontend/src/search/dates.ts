// Days as people give them, in their own time, for a server that takes moments.

/** The moment when a day begins; undefined when the text is no day of the calendar. */
export function beginning(day: string, later = 0): string | undefined {
  const parts = /^(\d{4})-(\d{2})-(\d{2})$/.exec(day.trim());
  if (!parts) return undefined;
  const [year, month, date] = parts.slice(1).map(Number) as [number, number, number];
  const at = new Date(0);
  at.setFullYear(year, month - 1, date);
  at.setHours(0, 0, 0, 0);
  if (at.getMonth() !== month - 1 || at.getDate() !== date) return undefined; // 30 February
  at.setDate(date + later); // a day has not always 24 hours
  return at.toISOString();
}

/** The moment when a day is over. */
export function end(day: string): string | undefined {
  return beginning(day, 1);
}
