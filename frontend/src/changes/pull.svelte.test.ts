import { afterEach, beforeEach, expect, test, vi } from 'vitest';
import { ApiError } from '../api/errors';
import type { PullRequest, PullRequestStatus } from '../api/records';
import { client, conversations, toasts } from '../state/state';
import { markOf, messageAbout, Pull, waitsFor } from './pull.svelte';

beforeEach(() => vi.useFakeTimers());
afterEach(() => {
  vi.useRealTimers();
  vi.restoreAllMocks();
});

const status = (part: Partial<PullRequestStatus> = {}): PullRequestStatus => ({
  forge: 'github',
  host: 'github.com',
  repository: 'acme/app',
  into: 'acme/app',
  remote: 'origin',
  branch: 'total',
  base: 'main',
  bases: ['main'],
  unpushed: 1,
  hooks: [],
  tools: ['gh'],
  use: 'gh',
  ...part,
});

const request = (part: Partial<PullRequest> = {}): PullRequest => ({
  number: 12,
  title: 'Sum up',
  url: 'https://github.com/acme/app/pull/12',
  state: 'open',
  base: 'main',
  mergeable: 'yes',
  review: 'none',
  checks: { passed: 0, failed: [], pending: 0 },
  comments: [],
  ...part,
});

/** A pull request over a server whose answers are given by their routes. */
function over(answers: Record<string, () => unknown>) {
  const call = vi.spyOn(client, 'call').mockImplementation(((route: string) => {
    const answer = answers[route.replace('/client/sessions/{id}', '')];
    return answer ? Promise.resolve().then(answer) : Promise.reject(new Error(`no answer to ${route}`));
  }) as typeof client.call);
  return { pull: new Pull('s1'), call, routes: () => call.mock.calls.map(([route]) => route) };
}

const asked = 'GET /pull-request';

test('the server is asked every minute while somebody looks at the page', async () => {
  let seen: DocumentVisibilityState = 'visible';
  vi.spyOn(document, 'visibilityState', 'get').mockImplementation(() => seen);
  const { pull, call } = over({ [asked]: () => status() });
  const ends = [pull.follow(), pull.follow()];
  await vi.advanceTimersByTimeAsync(0);
  const first = call.mock.calls.length;
  await vi.advanceTimersByTimeAsync(60_000);
  expect(call.mock.calls.length).toBe(first + 1);
  seen = 'hidden';
  await vi.advanceTimersByTimeAsync(600_000);
  expect(call.mock.calls.length).toBe(first + 1);
  seen = 'visible';
  document.dispatchEvent(new Event('visibilitychange'));
  await vi.advanceTimersByTimeAsync(0);
  expect(call.mock.calls.length).toBe(first + 2);
  for (const end of ends) end();
  await vi.advanceTimersByTimeAsync(600_000);
  window.dispatchEvent(new Event('focus'));
  expect(call.mock.calls.length).toBe(first + 2);
});

test('a directory without a forge is not asked about again by itself', async () => {
  const { pull, call } = over({
    [asked]: () => Promise.reject(new ApiError('landing.no_remote', {}, 409)),
  });
  const end = pull.follow();
  await vi.advanceTimersByTimeAsync(600_000);
  expect([call.mock.calls.length, pull.unread?.code, pull.status]).toEqual([
    1,
    'landing.no_remote',
    undefined,
  ]);
  end();
});

test('a proposal does not replace what the person has written, and another branch has another one', async () => {
  let branch = 'total';
  const { pull } = over({
    [asked]: () => status({ branch }),
    'GET /pull-request/proposal': () => ({ title: 'Sum up', text: 'All rows.' }),
  });
  await pull.want();
  expect([pull.wanted, pull.title, pull.text]).toEqual([true, 'Sum up', 'All rows.']);
  pull.title = 'Mine';
  await pull.want();
  expect(pull.title).toBe('Mine');
  branch = 'other';
  await pull.load();
  expect([pull.wanted, pull.title, pull.text]).toEqual([false, undefined, undefined]);
});

test('a pull request is made of what stands in the form', async () => {
  vi.spyOn(toasts, 'show').mockReturnValue(undefined as never);
  const { pull, call } = over({
    [asked]: () => status({ pullRequest: request() }),
    'POST /pull-request': () => ({ pushed: true, pullRequest: request() }),
  });
  pull.status = status();
  [pull.wanted, pull.title, pull.text, pull.draft] = [true, 'Mine', 'Text', true];
  pull.setBase('trunk');
  expect(await pull.create(true)).toBe(true);
  expect(call.mock.calls[0]?.[1]).toMatchObject({
    body: { branch: 'total', base: 'trunk', title: 'Mine', text: 'Text', draft: true, noHooks: true },
  });
  expect([pull.wanted, pull.name, pull.open?.number]).toEqual([false, '#12', 12]);
});

test('what was written stays when a pull request is refused', async () => {
  const { pull, routes } = over({
    [asked]: () => status({ pullRequest: request() }),
    'POST /pull-request': () => Promise.reject(new ApiError('forge.exists', { base: 'main' }, 409)),
  });
  pull.status = status();
  [pull.wanted, pull.title] = [true, 'Mine'];
  expect(await pull.create(false)).toBe(false);
  await vi.advanceTimersByTimeAsync(0);
  expect([pull.error?.code, pull.title]).toEqual(['forge.exists', 'Mine']);
  expect(routes()).toContain('GET /client/sessions/{id}/pull-request');
});

test('the page of a forge is offered where the browser makes the pull request', async () => {
  const { pull } = over({
    [asked]: () => status({ use: 'page' }),
    'POST /pull-request': () => ({ pushed: true, page: 'https://github.com/acme/app/compare/main...total' }),
  });
  pull.status = status({ use: 'page' });
  [pull.wanted, pull.title] = [true, 'Mine'];
  await pull.create(false);
  expect([pull.wanted, pull.page]).toEqual([true, 'https://github.com/acme/app/compare/main...total']);
});

test('the agent is told once of a check, with the words of others as a quotation', async () => {
  const say = vi.spyOn(conversations, 'say').mockResolvedValue(true);
  vi.spyOn(toasts, 'show').mockReturnValue(undefined as never);
  const { pull } = over({});
  pull.status = status({ pullRequest: request() });
  await pull.send({ name: 'CI / test', url: 'https://ci.example/1' });
  expect(say.mock.calls[0]?.[1]).toContain('“CI / test” of pull request #12');
  expect(pull.sent.size).toBe(1);
  say.mockResolvedValue(false);
  await pull.send({ name: 'CI / lint' });
  expect(pull.sent.size).toBe(1);
  const comment = { id: 'c', author: 'bob', text: 'One.\n\n> Two.', path: 'total.go', line: 3 };
  expect(messageAbout(comment, '!5')).toBe(
    'bob has commented on `total.go:3` in pull request !5:\n\n> One.\n> \n> > Two.\n\nSee to it.',
  );
});

test.each([
  ['nothing known', {}, 'ok', []],
  [
    'a failed check',
    { checks: { passed: 1, failed: [{ name: 'a' }], pending: 1 } },
    'failing',
    ['1 check failed', '1 check is running'],
  ],
  ['a running check', { checks: { passed: 1, failed: [], pending: 2 } }, 'pending', ['2 checks are running']],
  [
    'passed and approved',
    { checks: { passed: 3, failed: [], pending: 0 }, review: 'approved' },
    'ok',
    ['all 3 checks passed', 'approved'],
  ],
  ['changes asked for', { review: 'changes' }, 'failing', ['changes were asked for']],
  ['a missing review', { review: 'required', mergeable: 'blocked' }, 'pending', ['a review is missing']],
  ['conflicts', { mergeable: 'conflicts' }, 'failing', ['conflicts with main']],
  [
    'a rule',
    { mergeable: 'blocked', review: 'approved' },
    'ok',
    ['approved', 'a rule of the forge keeps it from being merged'],
  ],
  ['merged', { state: 'merged', review: 'changes' }, 'ended', []],
] as const)('%s: its mark and its words', (_, part, mark, words) => {
  const one = request(part as Partial<PullRequest>);
  expect([markOf(one), waitsFor(one)]).toEqual([mark, words]);
});
