/** The server's largest budget in MiB. */
export const largestBudget = 1_048_576;

/** Parses a budget in MiB; undefined for invalid text. An empty text is invalid, because there is a separate switch for "off". */
export function budgetOf(text: string): number | undefined {
  const digits = text.trim().replace(/[\s_',.](?=\d{3}(\D|$))/g, '');
  if (!/^\d{1,7}$/.test(digits)) return undefined;
  const budget = Number(digits);
  return budget > 0 && budget <= largestBudget ? budget : undefined;
}
