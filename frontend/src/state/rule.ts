import type { NewRule, Rule, RuleSuggestion } from '../api/records';
import { t } from '../strings/t';

// Rules as approvals offer them and transcripts show them. writing.ts has the functions that only the list and the editor need; the page
// starts without that file.

export type Effect = Rule['effect'];
export type Scope = Rule['scope'];
export type Kind = Rule['kind'];

/** Returns the first words of a rule of this kind. */
export function verbOf(kind: Kind): string {
  return t(`rule.verb.${kind === 'other' ? 'use' : kind}`);
}

export function expired(rule: Pick<Rule, 'expiresAt'>, now: number): boolean {
  return rule.expiresAt !== undefined && Date.parse(rule.expiresAt) <= now;
}

/** Returns the fields to create a removed rule again. */
export function sameRule(rule: Rule): NewRule {
  return {
    effect: rule.effect,
    kind: rule.kind,
    pattern: rule.pattern,
    ...whereOf(rule),
    ...(rule.expiresAt === undefined ? {} : { expiresAt: rule.expiresAt }),
    ...(rule.note ? { note: rule.note } : {}),
  };
}

/** Returns a scope with the fields that belong to that scope alone. */
export function whereOf({
  scope,
  session,
  directory,
  place,
}: Pick<Rule, 'scope' | 'session' | 'directory' | 'place'>): Pick<
  NewRule,
  'scope' | 'session' | 'directory' | 'place'
> {
  if (scope === 'session') return { scope, session: session ?? '' };
  if (scope === 'directory') return { scope, directory: directory ?? '', ...(place ? { place } : {}) };
  return { scope };
}

const verbs = /^(?:Run|Edit|Read|Delete|Move|Search|Fetch from|Use|Anything by) /;

/** Splits the server's sentence about a rule into the verb and the literal rest. The sentence is all that is left of a removed rule. */
export function wordsOf(text: string): { verb: string; what: string } {
  const verb = verbs.exec(text)?.[0] ?? '';
  return { verb: verb.trim(), what: text.slice(verb.length) };
}

// The rules that an approval offers.

/** The suggestions of one effect for one subject. Subjects and scopes have the server's order, the narrowest first. */
export interface Offered {
  kind: Kind;
  pattern: string;
  scopes: Scope[];
}

export function offered(suggestions: readonly RuleSuggestion[], effect: Effect): Offered[] {
  const list: Offered[] = [];
  for (const one of suggestions) {
    if (one.effect !== effect) continue;
    const known = list.find(({ kind, pattern }) => kind === one.kind && pattern === one.pattern);
    if (known) known.scopes.push(one.scope);
    else list.push({ kind: one.kind, pattern: one.pattern, scopes: [one.scope] });
  }
  return list;
}
