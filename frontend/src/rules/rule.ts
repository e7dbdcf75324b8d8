import type { NewRule, Rule, RuleSuggestion } from '../api/records';
import { t } from '../strings/t';

// Rules as they are offered and told of. What is needed only to list and to write them stands in writing.ts: the page starts without it.

export type Effect = Rule['effect'];
export type Scope = Rule['scope'];
export type Kind = Rule['kind'];

/** How a rule of this kind begins in words. */
export function verbOf(kind: Kind): string {
  return t(`rule.verb.${kind === 'other' ? 'use' : kind}`);
}

export function expired(rule: Pick<Rule, 'expiresAt'>, now: number): boolean {
  return rule.expiresAt !== undefined && Date.parse(rule.expiresAt) <= now;
}

/** What a rule is made from once more, after it was removed. */
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

/** The scope, with what belongs to it and nothing of the others. */
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

/** A rule in the words of the server, which are all that is left of one that is gone: the verb, and what is to be read letter by letter. */
export function wordsOf(text: string): { verb: string; what: string } {
  const verb = verbs.exec(text)?.[0] ?? '';
  return { verb: verb.trim(), what: text.slice(verb.length) };
}

// What an approval offers.

/** The suggestions of one effect by what they are about, both in the order of the server: the narrowest first. */
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
