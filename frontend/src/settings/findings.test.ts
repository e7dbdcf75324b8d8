import { expect, test } from 'vitest';
import type { Finding } from '../api/records';
import { canRepair, groupsOf, isNote, mustChoose, wordsOf } from './findings';

const finding = (code: string, part: Partial<Finding> = {}): Finding => ({
  code,
  params: {},
  repaired: false,
  ...part,
});
const name = (agent: string) => (agent === 'codex' ? 'Codex' : agent);

test('a finding is a sentence, with names of agents and sizes', () => {
  expect(wordsOf(finding('agent.forgot', { params: { agent: 'codex', acpSessionId: 'x' } }), name)).toMatch(
    /Codex/,
  );
  expect(wordsOf(finding('blob.unused', { params: { count: '2', bytes: '2048' } }), name)).toMatch(/2 KB/);
  expect(wordsOf(finding('new.code'), name)).toMatch(/new\.code/);
});

test.each([
  'verify.failed',
  'verify.more',
  'database.damaged',
  'database.record',
  'database.references',
  'journal.gap',
  'journal.damaged',
  'blob.missing',
  'blob.damaged',
  'blob.unused',
  'entries.differ',
  'turns.differ',
  'requests.differ',
  'search.missing',
  'search.extra',
  'search.damaged',
  'workspace.missing',
  'session.agent_unknown',
  'agent.forgot',
  'agent.offers',
  'agent.unlisted',
])('%s has words', (code) => {
  expect(wordsOf(finding(code), name)).not.toMatch(/There are no words/);
});

test('what is wrong stands first, what is only told last', () => {
  const groups = groupsOf([
    finding('agent.offers'),
    finding('entries.differ', { repaired: true }),
    finding('journal.gap'),
    finding('agent.offers'),
  ]);
  expect(groups.map((group) => group.map((one) => one.code))).toEqual([
    ['journal.gap'],
    ['entries.differ'],
    ['agent.offers', 'agent.offers'],
  ]);
  expect([isNote(finding('agent.offers')), isNote(finding('journal.gap'))]).toEqual([true, false]);
});

test('only what the journal holds can be repaired, and once', () => {
  expect(canRepair(finding('entries.differ'))).toBe(true);
  expect(canRepair(finding('entries.differ', { repaired: true }))).toBe(false);
  expect(canRepair(finding('journal.gap'))).toBe(false);
});

test('a repair puts back what is missing; what would be replaced or removed is chosen', () => {
  const lost = finding('entries.differ', { params: { missing: '2', different: '0', extra: '0' } });
  expect([canRepair(lost), mustChoose(lost)]).toEqual([true, false]);
  for (const params of [
    { missing: '0', different: '1', extra: '0' },
    { missing: '1', different: '0', extra: '3' },
  ]) {
    const contradicted = finding('entries.differ', { params });
    expect([canRepair(contradicted), mustChoose(contradicted)]).toEqual([false, true]);
    expect(mustChoose({ ...contradicted, repaired: true })).toBe(false);
  }
});
