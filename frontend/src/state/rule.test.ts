import { describe, expect, test } from 'vitest';
import type { Rule, RuleSuggestion } from '../api/records';
import { expired, offered, sameRule, wordsOf } from './rule';
import {
  directoriesOf,
  draftOf,
  expiryOf,
  fieldOf,
  groups,
  localTime,
  matches,
  patchOf,
  ruleOf,
  type Draft,
} from '../rules/writing';

const now = Date.parse('2026-11-22T10:00:00Z');

function rule(part: Partial<Rule> = {}): Rule {
  return {
    id: 'r1',
    effect: 'allow',
    scope: 'everywhere',
    kind: 'execute',
    pattern: 'git *',
    createdAt: '2026-11-22T09:00:00Z',
    hits: 0,
    text: 'Run git *',
    ...part,
  };
}

describe('what the server tells of a rule', () => {
  test.each([
    ['Run git *', 'Run', 'git *'],
    ['Fetch from *.example.org', 'Fetch from', '*.example.org'],
    ['Anything by any tool', 'Anything by', 'any tool'],
    ['Read  ', 'Read', ' '],
    ['Something new', '', 'Something new'],
    ['', '', ''],
  ])('%j is %j of %j', (text, verb, what) => {
    expect(wordsOf(text)).toEqual({ verb, what });
  });

  test('a rule ends at the moment that it names', () => {
    const at = new Date(now).toISOString();
    expect(expired({ expiresAt: at }, now)).toBe(true);
    expect(expired({ expiresAt: at }, now - 1)).toBe(false);
    expect(expired({}, now)).toBe(false);
  });
});

describe('what an approval offers', () => {
  const one = (pattern: string, scope: RuleSuggestion['scope'], effect: RuleSuggestion['effect'] = 'allow') =>
    ({ pattern, scope, effect, kind: 'execute', text: `Run ${pattern}` }) satisfies RuleSuggestion;

  test('is put together by what it is about, the narrowest first, one effect at a time', () => {
    const list = [
      one('git status', 'session'),
      one('git status', 'directory'),
      one('git *', 'session'),
      one('git status', 'session', 'deny'),
    ];
    expect(offered(list, 'allow')).toEqual([
      { kind: 'execute', pattern: 'git status', scopes: ['session', 'directory'] },
      { kind: 'execute', pattern: 'git *', scopes: ['session'] },
    ]);
    expect(offered(list, 'deny')).toEqual([{ kind: 'execute', pattern: 'git status', scopes: ['session'] }]);
    expect(offered([], 'allow')).toEqual([]);
  });

  test('adds no scope of its own', () => {
    expect(offered([one('sudo ls', 'session'), one('sudo ls', 'directory')], 'allow')[0]?.scopes).toEqual([
      'session',
      'directory',
    ]);
  });
});

describe('the list', () => {
  test('has the widest first, and in each what denies first', () => {
    const list = groups([
      rule({ id: 's', scope: 'session', session: 'one' }),
      rule({ id: 'b', scope: 'directory', directory: '/b' }),
      rule({ id: 'a', scope: 'directory', directory: '/a' }),
      rule({ id: 'far', scope: 'directory', directory: '/a', place: 'far' }),
      rule({ id: 'old', createdAt: '2026-11-20T09:00:00Z' }),
      rule({ id: 'new' }),
      rule({ id: 'ask', effect: 'ask' }),
      rule({ id: 'no', effect: 'deny', createdAt: '2026-11-01T09:00:00Z' }),
      rule({ id: 'builtin:x', builtin: true }),
    ]);
    expect(list.map((group) => group.rules.map(({ id }) => id))).toEqual([
      ['no', 'ask', 'new', 'old'],
      ['a'],
      ['far'],
      ['b'],
      ['s'],
    ]);
  });

  test('is filtered by all of the words, wherever they are', () => {
    const one = rule({ scope: 'directory', directory: '/home/ada/app', note: 'By hand' });
    for (const words of ['git', 'GIT allow', 'ada run', 'hand  execute'])
      expect(matches(one, words)).toBe(true);
    for (const words of ['npm', 'git deny']) expect(matches(one, words)).toBe(false);
  });

  test('directories are those of conversations and of rules, once each', () => {
    const at = (path: string, place = 'local') => ({ workspace: { id: path, path }, place });
    expect(
      directoriesOf(
        [at('/b'), at('/a'), at('/b'), at('/b', 'far')],
        [rule({ directory: '/a' }), rule({ directory: '/c' }), rule()],
      ),
    ).toEqual([
      { path: '/a', place: '' },
      { path: '/b', place: '' },
      { path: '/c', place: '' },
      { path: '/b', place: 'far' },
    ]);
  });
});

describe('the form', () => {
  const draft: Draft = {
    effect: 'deny',
    kind: 'edit',
    pattern: ' src/** ',
    scope: 'directory',
    session: 'one',
    directory: { path: '/a', place: '' },
    expires: 'day',
    at: '',
    note: ' mine ',
  };

  test('gives what belongs to its scope and nothing else', () => {
    const made = {
      effect: 'deny',
      kind: 'edit',
      pattern: 'src/**',
      note: 'mine',
      expiresAt: '2026-11-23T10:00:00.000Z',
    };
    expect(ruleOf(draft, now)).toEqual({ ...made, scope: 'directory', directory: '/a' });
    expect(ruleOf({ ...draft, scope: 'session' }, now)).toEqual({
      ...made,
      scope: 'session',
      session: 'one',
    });
    expect(ruleOf({ ...draft, scope: 'everywhere' }, now)).toEqual({ ...made, scope: 'everywhere' });
    const far = { ...draft, directory: { path: '/a', place: 'far' } };
    expect(ruleOf(far, now)).toEqual({ ...made, scope: 'directory', directory: '/a', place: 'far' });
  });

  test('expires as it is told, and a time that cannot be read has passed', () => {
    expect(expiryOf({ expires: 'never', at: '' }, now)).toBeUndefined();
    expect(expiryOf({ expires: 'hour', at: '' }, now)).toBe('2026-11-22T11:00:00.000Z');
    const at = '2026-11-24T08:30:00.000Z';
    expect(expiryOf({ expires: 'at', at: localTime(at) }, now)).toBe(at);
    expect(expiryOf({ expires: 'at', at: '' }, now)).toBe('1970-01-01T00:00:00.000Z');
  });

  test('a rule comes back from it as it was, to the second of its end', () => {
    const whole = rule({
      scope: 'session',
      session: 'one',
      expiresAt: '2026-11-24T08:30:17.000Z',
      note: 'mine',
    });
    const back = draftOf(whole);
    const patch = patchOf(back, ruleOf(back, now), whole);
    expect(patch).toEqual({ ...sameRule(whole), place: '' });
    const never = { ...back, expires: 'never' as const, note: '' };
    expect(patchOf(never, ruleOf(never, now), whole)).toMatchObject({ expiresAt: '', note: '' });
  });

  test('a refusal is shown where it belongs, and no code is taken for a member of an object', () => {
    expect(fieldOf({ code: 'rule.too_wide' })).toBe('pattern');
    expect(fieldOf({ code: 'rule.danger' })).toBe('scope');
    expect(fieldOf({ code: 'rule.too_many' })).toBeUndefined();
    expect(fieldOf({ code: 'constructor' })).toBeUndefined();
  });
});
