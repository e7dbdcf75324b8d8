import { describe, expect, test } from 'vitest';
import type { Agent, InstallProgress } from '../api/records';
import { agent } from '../test/records';
import {
  actionsOf,
  agentIn,
  answered,
  emptyBook,
  ended,
  hasUpdate,
  inOrder,
  inPlace,
  later,
  progressed,
  shareOf,
  upsert,
  withoutFailures,
  type AgentBook,
} from './agents';

const book = (listed: Agent[], more?: Agent[]): AgentBook => ({ ...emptyBook, listed, more });
const missing = agent({ pinned: '0.100.0', package: '@agentclientprotocol/claude-agent-acp' });
const installed = agent({ state: 'ready', source: 'installed', version: '0.100.0', pinned: '0.100.0' });

// The events of an installation in order.
const news: InstallProgress[] = [
  { agent: 'claude', step: 'resolve' },
  { agent: 'claude', step: 'resolve', log: 'npm http fetch GET 200 http://127.0.0.1:4873/claude 12ms' },
  { agent: 'claude', step: 'download', bytes: 675, total: 3_146_000 },
  { agent: 'claude', step: 'download', bytes: 1_573_000, total: 3_146_000 },
];

describe('an installation', () => {
  test('is followed by its events, and keeps the last line of its log', () => {
    let now = book([missing]);
    for (const one of news) now = progressed(now, one);
    expect(agentIn(now, 'claude')?.installing).toEqual({
      step: 'download',
      bytes: 1_573_000,
      total: 3_146_000,
    });
    expect(now.logs).toEqual({ claude: 'npm http fetch GET 200 http://127.0.0.1:4873/claude 12ms' });
    now = upsert(now, installed);
    expect(agentIn(now, 'claude')).toEqual(installed);
    expect(now.logs).toEqual({});
  });

  test('of the rest of the catalogue is shown where it was begun', () => {
    const now = progressed(book([], [missing]), news[0] as InstallProgress);
    expect(now.listed).toEqual([]);
    expect(now.more?.[0]?.installing?.step).toBe('resolve');
  });

  test('of an agent that nobody has told of waits for its record', () => {
    expect(progressed(emptyBook, news[0] as InstallProgress)).toBe(emptyBook);
    expect(upsert(emptyBook, missing).listed).toEqual([missing]);
  });

  test('that begins again takes the failure of the one before away', () => {
    const failed = { ...missing, failure: { code: 'agent.install_failed', detail: 'npm failed' } };
    expect(agentIn(progressed(book([failed]), news[0] as InstallProgress), 'claude')).not.toHaveProperty(
      'failure',
    );
  });

  test('has an end that is told by the records around it', () => {
    const running = { ...missing, installing: { step: 'verify' as const } };
    expect(ended(running, installed)).toBe('installed');
    expect(ended(running, missing)).toBe('cancelled');
    expect(ended(running, { ...missing, failure: { code: 'x', detail: '' } })).toBe('failed');
    expect(ended(running, running)).toBeUndefined();
    expect(ended(missing, installed)).toBeUndefined();
    const old = { ...installed, version: '0.99.0' };
    expect(ended({ ...old, installing: { step: 'verify' } }, installed)).toBe('installed');
    expect(ended({ ...old, installing: { step: 'verify' } }, old)).toBe('cancelled');
  });

  test('has a share only where the total is known, and never more than all', () => {
    expect(shareOf({ step: 'download', bytes: 50, total: 200 })).toBe(0.25);
    expect(shareOf({ step: 'download', bytes: 300, total: 200 })).toBe(1);
    expect(shareOf({ step: 'download', bytes: 50 })).toBeUndefined();
    expect(shareOf({ step: 'resolve' })).toBeUndefined();
  });
});

describe('an answer', () => {
  test('does not undo what an event told while it was on its way', () => {
    const asked = book([{ ...missing, installing: { step: 'switch' } }]);
    const now = upsert(asked, installed);
    const late = answered(now, asked, asked.listed, undefined);
    expect(agentIn(late, 'claude')).toEqual(installed);
  });

  test('is taken where nothing happened meanwhile', () => {
    const asked = book([missing]);
    expect(answered(asked, asked, [installed], undefined).listed).toEqual([installed]);
    expect(answered(asked, asked, [], undefined).listed).toEqual([]);
  });

  test('parts the offered ones from the rest of the catalogue', () => {
    const cline = agent({ id: 'cline', name: 'Cline' });
    const after = answered(emptyBook, emptyBook, [missing], [missing, cline]);
    expect(after.more).toEqual([cline]);
    // An agent that was installed meanwhile is among the listed agents.
    expect(answered(after, after, [missing, cline], undefined).more).toEqual([]);
  });

  test('keeps an agent that came by an event alone', () => {
    const asked = emptyBook;
    expect(answered(upsert(asked, missing), asked, [], undefined).listed).toEqual([missing]);
  });

  test('leaves the reason of a failure until a person looks anew', () => {
    const failed = { ...missing, failure: { code: 'agent.install_failed', detail: 'npm failed' } };
    const asked = book([failed]);
    expect(answered(asked, asked, [missing], undefined).listed).toEqual([failed]);
    const anew = withoutFailures(asked);
    expect(answered(anew, anew, [missing], undefined).listed).toEqual([missing]);
    expect(answered(asked, asked, [installed], undefined).listed).toEqual([installed]);
  });
});

describe('actions', () => {
  const cases: [string, Agent, string[]][] = [
    ['missing', missing, ['install']],
    ['missing, and nothing to get it with', agent({ installable: false }), []],
    ['installed', installed, ['test', 'login', 'remove']],
    [
      'installed and old',
      { ...installed, version: '0.99.0', previous: '0.98.0' },
      ['update', 'test', 'login', 'rollback', 'remove'],
    ],
    ['installed and broken', { ...installed, state: 'broken' }, ['install', 'test', 'remove']],
    [
      'on PATH and old',
      agent({ state: 'ready', version: '0.99.0', pinned: '0.100.0' }),
      ['update', 'test', 'login'],
    ],
    ['on PATH, of no known version', agent({ state: 'ready', pinned: '0.100.0' }), ['test', 'login']],
    [
      'of agents.json',
      agent({ state: 'needs_login', source: 'custom', editable: true, installable: false }),
      ['test', 'login', 'edit'],
    ],
    [
      'of agents.json and not there',
      agent({ source: 'custom', editable: true, installable: false }),
      ['edit'],
    ],
    ['built in', agent({ state: 'ready', source: 'builtin', installable: false }), ['test']],
    ['being installed', { ...missing, installing: { step: 'resolve' } }, []],
  ];
  test.each(cases)('of an agent that is %s', (_, one, actions) => {
    expect(actionsOf(one)).toEqual(actions);
  });
});

test('an update is a later version, never an earlier one', () => {
  expect(later('0.100.0', '0.99.0')).toBe(true);
  expect(later('0.99.0', '0.100.0')).toBe(false);
  expect(later('1.0.0', '1.0.0')).toBe(false);
  expect(later('1.0.0', '1.0.0-beta.2')).toBe(true);
  expect(later('1.0.0-beta.10', '1.0.0-beta.9')).toBe(true);
  expect(later('1.0.0-beta', '1.0.0')).toBe(false);
  expect(later('2.0.0', 'nightly')).toBe(false);
  expect(hasUpdate({ ...installed, version: '0.101.0' })).toBe(false);
});

describe('the order', () => {
  const one = (id: string, part: Partial<Agent>) => agent({ id, ...part });
  const all = [
    one('gone', { state: 'not_found' }),
    one('demo', { state: 'ready', source: 'builtin' }),
    one('bad', { state: 'broken' }),
    one('login', { state: 'needs_login' }),
    one('good', { state: 'ready' }),
  ];

  test('has what works first', () => {
    expect(inOrder(all).map(({ id }) => id)).toEqual(['good', 'login', 'bad', 'demo', 'gone']);
  });

  test('stays while agents change, and has new ones behind', () => {
    const places = ['bad', 'good', 'demo'];
    expect(inPlace(all, places).map(({ id }) => id)).toEqual(['bad', 'good', 'demo', 'login', 'gone']);
  });
});
