import { expect, test } from 'vitest';
import type { TestReport } from '../api/records';
import { agent } from '../test/records';
import { adviceOf, capabilitiesOf, endOf, reportText, stepsOf, verdictOf } from './report';

const sick: TestReport = {
  agent: agent({
    id: 'sick',
    name: 'Sick',
    state: 'ready',
    source: 'custom',
    path: '/opt/sick',
    reason: 'agents.json gives its path',
  }),
  steps: [
    { step: 'resolve', ok: true, ms: 0, detail: '/opt/sick' },
    { step: 'spawn', ok: true, ms: 14 },
    { step: 'initialize', ok: false, ms: 1_250, detail: 'the process ended with code 3' },
  ],
  exitCode: 3,
  stderr: '\u001b[31mcannot find the licence\u001b[0m\n',
  env: { path: ['/usr/bin', '/bin'], node: '/usr/bin/node' },
  advice: [
    { code: 'crash', params: {} },
    { code: 'brand_new' as 'crash', params: {} },
  ],
};

const sound: TestReport = {
  agent: agent({ state: 'ready' }),
  steps: (['resolve', 'spawn', 'initialize', 'session'] as const).map((step) => ({ step, ok: true, ms: 5 })),
  env: { path: [] },
  advice: [],
};

test('steps that were not reached are shown as such', () => {
  expect(stepsOf(sick).map(({ step, state }) => [step, state])).toEqual([
    ['resolve', 'ok'],
    ['spawn', 'ok'],
    ['initialize', 'failed'],
    ['session', 'unreached'],
  ]);
});

test('the verdict goes by the last step, or by the login that it asks for', () => {
  expect(verdictOf(sick)).toBe('failed');
  expect(verdictOf(sound)).toBe('ready');
  expect(verdictOf({ ...sound, steps: sound.steps.slice(0, 3) })).toBe('failed');
  expect(verdictOf({ ...sound, agent: agent({ state: 'needs_login' }) })).toBe('needs_login');
});

test('capabilities are read whatever an agent sends', () => {
  const raw = {
    loadSession: true,
    promptCapabilities: { image: true, audio: false, embeddedContext: true },
    sessionCapabilities: { list: {}, resume: {}, fork: null, _meta: {} },
    mcpCapabilities: { sse: false },
    auth: {},
    _meta: { vendor: true },
  };
  expect(capabilitiesOf(raw)).toEqual([
    { group: '', members: ['load session', 'auth'] },
    { group: 'prompt', members: ['image', 'embedded context'] },
    { group: 'session', members: ['list', 'resume'] },
  ]);
  for (const odd of [undefined, null, 'all', 7, []]) expect(capabilitiesOf(odd)).toEqual([]);
});

test('advice that nobody has words for shows its code', () => {
  expect(adviceOf(sick)).toEqual([
    'Its process ended. Its error output says why.',
    'There is no advice for this yet: brand_new',
  ]);
});

test('the end of the process is told when it ended by itself', () => {
  expect(endOf(sick)).toBe('Sick ended with exit code 3.');
  expect(endOf({ ...sick, signal: 'SIGKILL' })).toBe('Sick was ended by SIGKILL.');
  expect(endOf(sound)).toBe('');
});

test('the whole report can be passed on as text', () => {
  expect(reportText(sick, '0.1.0')).toBe(`Sick (sick): It did not start
Deskhand: 0.1.0
Program: /opt/sick
Why this one: agents.json gives its path

- resolve: done, 0 ms: /opt/sick
- spawn: done, 14 ms
- initialize: failed, 1.3 s: the process ended with code 3
- session: not reached
- Sick ended with exit code 3.

What to do: Its process ended. Its error output says why.
What to do: There is no advice for this yet: brand_new
node: /usr/bin/node
PATH: /usr/bin, /bin

Error output:
cannot find the licence
`);
});
