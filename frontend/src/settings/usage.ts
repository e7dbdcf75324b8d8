import type { TallyRow, TurnSum } from '../api/records';
import { t } from '../strings/t';
import { money } from '../ui/format';

// The days of a report, and the numbers of a sum in words.

const dayLength = 86_400_000;

/** The moment in the middle of a day, in UTC: so no change of clocks moves it into another day. */
const noonOf = (day: string) => Date.parse(`${day}T12:00:00Z`);

/** The day that lies a number of days after another. */
export function plusDays(day: string, n: number): string {
  return new Date(noonOf(day) + n * dayLength).toISOString().slice(0, 10);
}

/** All days from the first to the last. */
export function daysOf(from: string, to: string): string[] {
  const n = Math.round((noonOf(to) - noonOf(from)) / dayLength);
  return Array.from({ length: Math.max(0, n + 1) }, (_, at) => plusDays(from, at));
}

/** The weekday of a day: 0 = Monday. */
export const weekdayOf = (day: string) => (new Date(noonOf(day)).getUTCDay() + 6) % 7;

/** A day as people write it. */
export function dayText(day: string, style: 'short' | 'long' = 'long'): string {
  return new Date(noonOf(day)).toLocaleDateString(undefined, {
    timeZone: 'UTC',
    day: 'numeric',
    month: 'short',
    ...(style === 'long' ? { weekday: 'short', year: 'numeric' } : {}),
  });
}

/** The level of a day in a heat map: 0 = nothing, 4 = as much as the fullest day, by the square root, so that small days are seen. */
export function levelOf(value: number, most: number): number {
  if (value <= 0 || most <= 0) return 0;
  return Math.max(1, Math.ceil(Math.sqrt(value / most) * 4));
}

/** Whether no turn of a sum told its tokens. */
export const isSilent = (sum: TurnSum) => (sum.untold ?? 0) === sum.turns && sum.tokens.total === 0;

/** A number of tokens of a sum, or the words that it is not known. */
export const tokensText = (sum: TurnSum, n: number) =>
  isSilent(sum) ? t('usage.nothing') : n.toLocaleString();

/** The costs of a sum, each in its currency. They are never added. */
export const costText = (sum: TurnSum) =>
  sum.costs.length === 0
    ? t('usage.nothing')
    : sum.costs.map(({ amount, currency }) => money(amount, currency)).join(' + ');

/** The agents of some days in the order of their tokens, the most first. */
export function agentsOf(days: readonly TallyRow[]): { agent: string; name: string; total: number }[] {
  const all = new Map<string, { agent: string; name: string; total: number }>();
  for (const { agent, name, sum } of days.flatMap((day) => day.agents ?? [])) {
    const one = all.get(agent) ?? { agent, name, total: 0 };
    one.total += sum.tokens.total;
    all.set(agent, one);
  }
  return [...all.values()].sort((a, b) => b.total - a.total || a.agent.localeCompare(b.agent));
}
