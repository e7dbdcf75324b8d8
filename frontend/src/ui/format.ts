import { asApiError } from '../api/errors';
import type { Session } from '../api/records';
import { lookup, t } from '../strings/t';

const minute = 60_000;
const hour = 60 * minute;
const day = 24 * hour;

/** The title of a conversation, or the words for a conversation without one. */
export function titleOf(session: Session): string {
  return session.title || t('session.untitled');
}

/** The text for whatever was thrown: the catalogue's for the error's code, else the detail that the server wrote. */
export function errorText(thrown: unknown): string {
  const error = asApiError(thrown);
  const known = lookup(`error.${error.code}`, error.params);
  if (known) return known;
  return t('error.unknown', { detail: error.detail || error.code });
}

/** Formats the age of a time for a list. */
export function age(at: string, now: number): string {
  const past = now - Date.parse(at);
  if (past < minute) return t('age.now');
  if (past < hour) return t('age.minutes', { n: Math.floor(past / minute) });
  if (past < day) return t('age.hours', { n: Math.floor(past / hour) });
  if (past < 30 * day) return t('age.days', { n: Math.floor(past / day) });
  const date = new Date(at);
  // Lists are narrow, so the year appears only when it is not the current year.
  const year = date.getFullYear() === new Date(now).getFullYear() ? undefined : 'numeric';
  return date.toLocaleDateString(undefined, { year, month: 'short', day: 'numeric' });
}

/** Removes the backticks of a title that is code as a whole. Backticks within a title stay, because a shell runs the text between them. */
export function unmarked(title: string): string {
  return title.replace(/^`([^`]*)`$/, '$1');
}

/** Formats a length of time: tenths below ten seconds, then whole seconds, then two units. */
export function duration(ms: number): string {
  if (ms < 10_000) return t('duration.seconds', { n: (Math.max(0, ms) / 1000).toFixed(1) });
  const seconds = Math.round(ms / 1000);
  if (seconds < 60) return t('duration.seconds', { n: seconds });
  const minutes = Math.floor(seconds / 60);
  if (minutes < 60) return t('duration.minutes', { n: minutes, s: seconds % 60 });
  return t('duration.hours', { n: Math.floor(minutes / 60), m: minutes % 60 });
}

/** Formats a length of time with milliseconds. */
export function millis(ms: number): string {
  return ms < 1000 ? t('duration.milliseconds', { n: Math.round(Math.max(0, ms)) }) : duration(ms);
}

/** Formats a running time: 03:12, 1:03:12. */
export function stopwatch(ms: number): string {
  const seconds = Math.max(0, Math.floor(ms / 1000));
  const two = (value: number) => String(value).padStart(2, '0');
  const rest = `${two(Math.floor(seconds / 60) % 60)}:${two(seconds % 60)}`;
  return seconds < 3600 ? rest : `${Math.floor(seconds / 3600)}:${rest}`;
}

export function between(start: string, end: string): number {
  return Date.parse(end) - Date.parse(start);
}

/** Formats a time of day, with the date if that is not today. */
export function moment(at: string, now: number): string {
  const date = new Date(at);
  const time = date.toLocaleTimeString(undefined, { hour: '2-digit', minute: '2-digit' });
  if (date.toDateString() === new Date(now).toDateString()) return time;
  return `${date.toLocaleDateString(undefined, { month: 'short', day: 'numeric' })} ${time}`;
}

export function bytes(count: number): string {
  if (count < 1024) return t('bytes.b', { n: count });
  if (count < 1024 * 1024) return t('bytes.kib', { n: Math.round(count / 1024) });
  if (count < 1000 * 1024 * 1024) return t('bytes.mib', { n: (count / (1024 * 1024)).toFixed(1) });
  return t('bytes.gib', { n: (count / (1024 * 1024 * 1024)).toFixed(1) });
}

/** Formats a count in three digits: 950, 38k, 1.2M. */
export function short(count: number): string {
  if (count < 1_000) return String(count);
  if (count < 100_000) return t('count.thousand', { n: trim(count / 1_000) });
  if (count < 1_000_000) return t('count.thousand', { n: Math.round(count / 1_000) });
  return t('count.million', { n: trim(count / 1_000_000) });
}

function trim(value: number): string {
  return value < 10 ? value.toFixed(1).replace(/\.0$/, '') : String(Math.round(value));
}

/** Returns the last part of a path, the name of a directory in lists. */
export function baseName(path: string): string {
  const parts = path.split(/[/\\]/).filter(Boolean);
  return parts.at(-1) ?? path;
}

/** Replaces the home directory in a path by ~. */
export function tilde(path: string, home: string | undefined): string {
  if (!home || home === '/') return path;
  if (path === home) return '~';
  return path.startsWith(home) && /[/\\]/.test(path.charAt(home.length))
    ? `~${path.slice(home.length)}`
    : path;
}

/** Formats an amount of money with two decimals, or four for small amounts. */
export function money(amount: number, currency: string): string {
  const digits = amount < 0.1 ? 4 : 2;
  try {
    return amount.toLocaleString(undefined, { style: 'currency', currency, maximumFractionDigits: digits });
  } catch {
    return `${amount.toFixed(digits)} ${currency}`; // the system does not know the currency
  }
}
