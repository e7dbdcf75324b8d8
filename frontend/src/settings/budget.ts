/** The most that the server takes, in MiB. */
export const largestBudget = 1_048_576;

/** The budget that was written, in MiB; undefined where it is none. Nothing at all is none: off is said in words of its own. */
export function budgetOf(text: string): number | undefined {
  const digits = text.trim().replace(/[\s_',.](?=\d{3}(\D|$))/g, '');
  if (!/^\d{1,7}$/.test(digits)) return undefined;
  const budget = Number(digits);
  return budget > 0 && budget <= largestBudget ? budget : undefined;
}
