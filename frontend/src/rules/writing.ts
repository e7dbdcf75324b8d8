import type { ApiError } from '../api/errors';
import { here } from '../api/places';
import type { NewRule, Rule, RulePatch, Session } from '../api/records';
import { whereOf, type Effect, type Kind, type Scope } from '../state/rule';

// Rules as the settings list and edit them.

/** In order of precedence. */
export const effects = ['deny', 'ask', 'allow'] as const satisfies readonly Effect[];
/** The narrowest first. */
export const scopes = ['session', 'directory', 'everywhere'] as const satisfies readonly Scope[];
export const kinds = [
  'execute',
  'edit',
  'read',
  'delete',
  'move',
  'search',
  'fetch',
  'other',
  'any',
] as const satisfies readonly Kind[];

// The list.

export interface RuleGroup {
  key: string;
  scope: Scope;
  /** The directory of a group of the scope "directory"; session names the session of the scope "session". */
  directory?: string;
  place?: string;
  session?: string;
  rules: Rule[];
}

/** Reports whether a rule contains every word of a filter. */
export function matches(rule: Rule, filter: string): boolean {
  const text = [rule.text, rule.pattern, rule.effect, rule.kind, rule.directory, rule.note]
    .join('\n')
    .toLowerCase();
  return filter
    .toLowerCase()
    .split(/\s+/)
    .every((word) => text.includes(word));
}

/** Groups rules by scope, the widest first. In a group, rules that deny come first, then the newest. */
export function groups(rules: readonly Rule[]): RuleGroup[] {
  const byKey = new Map<string, RuleGroup>();
  for (const rule of rules) {
    if (rule.builtin) continue;
    const of = rule.scope === 'session' ? rule.session : rule.scope === 'directory' ? rule.directory : '';
    const key = `${rule.scope} ${rule.scope === 'directory' ? (rule.place ?? '') : ''} ${of ?? ''}`;
    let group = byKey.get(key);
    if (!group) {
      group = { key, rules: [], ...whereOf(rule) };
      byKey.set(key, group);
    }
    group.rules.push(rule);
  }
  const rank = (scope: Scope) => -scopes.indexOf(scope);
  const list = [...byKey.values()].sort(
    (a, b) => rank(a.scope) - rank(b.scope) || (a.directory ?? '').localeCompare(b.directory ?? ''),
  );
  for (const group of list) {
    group.rules.sort(
      (a, b) =>
        effects.indexOf(a.effect) - effects.indexOf(b.effect) ||
        (b.createdAt ?? '').localeCompare(a.createdAt ?? ''),
    );
  }
  return list;
}

/** A directory that a rule may name: those of sessions, by path. */
interface RuleDirectory {
  path: string;
  /** '' is this computer. */
  place: string;
}

export function directoriesOf(
  sessions: readonly Pick<Session, 'workspace' | 'place'>[],
  rules: readonly Rule[],
): RuleDirectory[] {
  const found = new Map<string, RuleDirectory>();
  const add = (path: string, place: string) => found.set(`${place} ${path}`, { path, place });
  for (const { workspace, place } of sessions) add(workspace.path, place === here ? '' : place);
  for (const rule of rules) if (rule.directory) add(rule.directory, rule.place ?? '');
  return [...found.values()].sort((a, b) => a.place.localeCompare(b.place) || a.path.localeCompare(b.path));
}

// The form.

export const expiries = ['never', 'hour', 'day', 'week', 'month', 'at'] as const;
type Expiry = (typeof expiries)[number];

export interface Draft {
  effect: Effect;
  kind: Kind;
  pattern: string;
  scope: Scope;
  session: string;
  directory: RuleDirectory;
  expires: Expiry;
  /** For 'at': local time, in the format of a date and time control. */
  at: string;
  note: string;
}

const hour = 3_600_000;
const lengths: Readonly<Record<Exclude<Expiry, 'never' | 'at'>, number>> = {
  hour,
  day: 24 * hour,
  week: 7 * 24 * hour,
  month: 30 * 24 * hour,
};

/** Returns the expiry of a draft; undefined for never. An unreadable time is passed on, so that the server reports the fault. */
export function expiryOf({ expires, at }: Pick<Draft, 'expires' | 'at'>, now: number): string | undefined {
  if (expires === 'never') return undefined;
  if (expires !== 'at') return new Date(now + lengths[expires]).toISOString();
  const time = new Date(at);
  return Number.isNaN(time.getTime()) ? new Date(0).toISOString() : time.toISOString();
}

/** Formats a time for a date and time control. */
export function localTime(at: string): string {
  const time = new Date(at);
  const two = (value: number) => String(value).padStart(2, '0');
  return `${time.getFullYear()}-${two(time.getMonth() + 1)}-${two(time.getDate())}T${two(time.getHours())}:${two(time.getMinutes())}`;
}

export function draftOf(rule: Rule): Draft {
  return {
    effect: rule.effect,
    kind: rule.kind,
    pattern: rule.pattern,
    scope: rule.scope,
    session: rule.session ?? '',
    directory: { path: rule.directory ?? '', place: rule.place ?? '' },
    expires: rule.expiresAt === undefined ? 'never' : 'at',
    at: rule.expiresAt === undefined ? '' : localTime(rule.expiresAt),
    note: rule.note ?? '',
  };
}

export function ruleOf(draft: Draft, now: number): NewRule {
  const expiresAt = expiryOf(draft, now);
  return {
    effect: draft.effect,
    kind: draft.kind,
    pattern: draft.pattern.trim(),
    ...whereOf({
      scope: draft.scope,
      session: draft.session,
      directory: draft.directory.path,
      place: draft.directory.place,
    }),
    ...(expiresAt === undefined ? {} : { expiresAt }),
    ...(draft.note.trim() ? { note: draft.note.trim() } : {}),
  };
}

/** Returns the patch that turns a rule into the draft; absent fields are cleared. An unchanged expiry keeps its seconds. */
export function patchOf(draft: Draft, next: NewRule, rule: Rule): RulePatch {
  const untouched =
    draft.expires === 'at' && rule.expiresAt !== undefined && localTime(rule.expiresAt) === draft.at;
  return {
    ...next,
    place: next.place ?? '',
    note: next.note ?? '',
    expiresAt: (untouched ? rule.expiresAt : next.expiresAt) ?? '',
  };
}

export type RuleField = 'effect' | 'kind' | 'pattern' | 'scope' | 'expires';

const fields: Readonly<Record<string, RuleField>> = {
  'rule.any_allows': 'kind',
  'rule.danger': 'scope',
  'rule.effect': 'effect',
  'rule.expiry': 'expires',
  'rule.kind': 'kind',
  'rule.no_pattern': 'pattern',
  'rule.not_covering': 'pattern',
  'rule.pattern': 'pattern',
  'rule.scope': 'scope',
  'rule.secret': 'pattern',
  'rule.too_wide': 'pattern',
  'rule.unknown_directory': 'scope',
  'rule.unknown_session': 'scope',
};

/** Returns the field that a refusal is about; undefined for a refusal about no single field. */
export function fieldOf(error: Pick<ApiError, 'code'>): RuleField | undefined {
  return Object.hasOwn(fields, error.code) ? fields[error.code] : undefined;
}
