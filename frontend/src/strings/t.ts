import type { agents } from './agents';
import type { answers } from './answers';
import type { applying } from './applying';
import type { attachments } from './attachments';
import type { browse } from './browse';
import type { cards } from './cards';
import type { changes } from './changes';
import type { compare } from './compare';
import type { discord } from './discord';
import type { en } from './en';
import type { equip } from './equip';
import type { inspect } from './inspect';
import type { keyboard } from './keyboard';
import type { landing } from './landing';
import type { limits } from './limits';
import type { output } from './output';
import type { pages } from './pages';
import type { panel } from './panel';
import type { preferences } from './preferences';
import type { pulls } from './pulls';
import type { queue } from './queue';
import type { screens } from './screens';
import type { settings } from './settings';
import type { setup } from './setup';
import type { start } from './start';
import { texts } from './texts';
import type { usage } from './usage';
import type { branches } from './branches';
import type { subagents } from './subagents';
import type { head } from './head';
import type { work } from './work';
import type { working } from './working';
import type { worktree } from './worktree';

/** Keys of later-loaded texts (see addTexts) look like other keys. */
export type Key =
  | keyof typeof en
  | keyof typeof agents
  | keyof typeof answers
  | keyof typeof applying
  | keyof typeof attachments
  | keyof typeof browse
  | keyof typeof cards
  | keyof typeof changes
  | keyof typeof compare
  | keyof typeof discord
  | keyof typeof equip
  | keyof typeof inspect
  | keyof typeof keyboard
  | keyof typeof landing
  | keyof typeof limits
  | keyof typeof output
  | keyof typeof pages
  | keyof typeof panel
  | keyof typeof preferences
  | keyof typeof pulls
  | keyof typeof queue
  | keyof typeof screens
  | keyof typeof settings
  | keyof typeof setup
  | keyof typeof start
  | keyof typeof usage
  | keyof typeof branches
  | keyof typeof subagents
  | keyof typeof head
  | keyof typeof work
  | keyof typeof working
  | keyof typeof worktree;
type Params = Readonly<Record<string, string | number>>;

const plural = new Intl.PluralRules('en');

function fill(text: string, params: Params | undefined): string {
  if (!params) return text;
  return text.replace(/\{(\w+)\}/g, (whole, name: string) => {
    const value = params[name];
    return value === undefined ? whole : String(value);
  });
}

/** Returns the text of a key. */
export function t(key: Key, params?: Params): string {
  return fill(texts[key] ?? key, params);
}

/** Returns the text of a counted key, `key.one` or `key.other`, with {n} replaced. */
export function tn<K extends CountedKey>(key: K, n: number, params?: Params): string {
  const form = plural.select(n) === 'one' ? 'one' : 'other';
  const text = texts[`${key}.${form}`] ?? key;
  return fill(text, { n: n.toLocaleString(), ...params });
}

type CountedKey = Key extends infer K ? (K extends `${infer Stem}.other` ? Stem : never) : never;

/** Returns the text of a key made from an outside code; undefined for an unknown code. */
export function lookup(key: string, params?: Params): string | undefined {
  const text = Object.hasOwn(texts, key) ? texts[key] : undefined;
  return text === undefined ? undefined : fill(text, params);
}
