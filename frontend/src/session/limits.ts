import type { AccountLimit } from '../api/records';
import '../strings/limits';
import { lookup, t } from '../strings/t';
import { moment } from '../ui/format';

// The limits of an account in words, and which of them a person has to know of.

/** The part of a limit from which on the limit is shown without being asked for. */
const much = 0.8;

/** Returns the limits whose reset has not passed. */
export function living(limits: readonly AccountLimit[], now: number): AccountLimit[] {
  return limits.filter(({ resetsAt }) => resetsAt === undefined || Date.parse(resetsAt) > now);
}

/** How near the account is to a limit. A warning that does not say how much is used counts as much. */
function nearness({ status, used }: AccountLimit): number {
  return status === 'rejected' ? 2 : (used ?? (status === 'allowed_warning' ? much : 0));
}

/** Returns the limit that is the nearest, of those that are used up, nearly used up, or warned of. */
export function nearest(limits: readonly AccountLimit[]): AccountLimit | undefined {
  return limits
    .filter((limit) => nearness(limit) >= much || limit.status === 'allowed_warning')
    .sort((a, b) => nearness(b) - nearness(a))[0];
}

/** Returns when the last of the limits resets that are used up; undefined where that is not known. */
export function freeAt(limits: readonly AccountLimit[]): string | undefined {
  return limits
    .filter((limit) => nearness(limit) >= 1)
    .flatMap(({ resetsAt }) => resetsAt ?? [])
    .sort((a, b) => Date.parse(a) - Date.parse(b))
    .at(-1);
}

/** The name of a limit and how much of the limit is used. */
export function levelOf({ type = '', status, used }: AccountLimit): string {
  const name = lookup(`limit.type.${type}`) ?? t('limit.named', { name: type.replaceAll('_', ' ') });
  if (status === 'rejected') return t('limit.rejected', { name });
  if (used !== undefined) return t('limit.used', { name, n: Math.round(used * 100) });
  return status === 'allowed_warning' ? t('limit.warning', { name }) : t('limit.allowed', { name });
}

/** When a limit resets, in words; empty where that is not known. */
export function resetOf({ resetsAt }: AccountLimit, now: number): string {
  return resetsAt === undefined ? '' : t('limit.resets', { time: moment(resetsAt, now) });
}

/** A limit in one line. */
export function lineOf(limit: AccountLimit, now: number): string {
  return [levelOf(limit), resetOf(limit, now)].filter(Boolean).join(' · ');
}
