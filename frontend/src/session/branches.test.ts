import { expect, test } from 'vitest';
import type { Entry, Session } from '../api/records';
import type { Item } from '../state/transcript';
import { beginnings, siblings } from './branches';

const item = (entry: Partial<Entry>) => ({ entry }) as Item;
const user = (turn?: string) => item({ kind: 'user', ...(turn === undefined ? {} : { turn }) });
const branched = item({ kind: 'divider', divider: { code: 'session.branched' } });

test('a message that was sent into a running turn begins none', () => {
  const [first, steered, second] = [user('t1'), user('t1'), user('t2')];
  const { turns, own } = beginnings([first, steered, item({ kind: 'agent', turn: 't2' }), second]);
  expect([...turns.values()]).toEqual([first, second]);
  expect(turns.get('t1')).toBe(first);
  expect(own).toBeUndefined();
});

test('the own message of a branch is the first after its divider', () => {
  const [mine, later] = [user('t2'), user('t3')];
  expect(beginnings([user('t1'), branched, mine, later]).own).toBe(mine);
  expect(beginnings([branched, user('t1'), branched]).own).toBeUndefined();
});

test('the branches of a message are found from its first conversation and from each branch', () => {
  const session = (id: string, origin?: Session['origin']) =>
    ({ id, ...(origin ? { origin } : {}) }) as Session;
  const of = { kind: 'branch', session: 'a', turn: 't2' } as const;
  const all = [session('a'), session('b', of), session('c', of), session('d', { ...of, turn: 't1' })];
  const sessions = new Map(all.map((one) => [one.id, one]));
  const branches = all.slice(1);
  const ids = (id: string, turn: string, own: boolean) =>
    siblings(sessions, branches, id, turn, own).map((one) => one.id);
  expect(ids('a', 't2', false)).toEqual(['a', 'b', 'c']);
  expect(ids('b', 'other', true)).toEqual(['a', 'b', 'c']);
  expect(ids('b', 'other', false)).toEqual([]);
  expect(ids('a', 't3', false)).toEqual([]);
  sessions.delete('a');
  expect(ids('c', 'other', true)).toEqual(['b', 'c']);
});
