// Converts local days to the moments that the server expects.

/** Returns the moment at which a day begins; undefined for a text that is no calendar day. */
export function beginning(day: string, later = 0): string | undefined {
  const parts = /^(\d{4})-(\d{2})-(\d{2})$/.exec(day.trim());
  if (!parts) return undefined;
  const [year, month, date] = parts.slice(1).map(Number) as [number, number, number];
  const at = new Date(0);
  at.setFullYear(year, month - 1, date);
  at.setHours(0, 0, 0, 0);
  if (at.getMonth() !== month - 1 || at.getDate() !== date) return undefined; // 30 February
  at.setDate(date + later); // not every day has 24 hours
  return at.toISOString();
}

/** Returns the moment at which a day ends. */
export function end(day: string): string | undefined {
  return beginning(day, 1);
}
