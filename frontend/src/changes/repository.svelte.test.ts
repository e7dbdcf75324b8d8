import { afterEach, expect, test, vi } from 'vitest';
import { ApiError } from '../api/errors';
import type { RepositoryStatus, UncommittedFile } from '../api/records';
import type { SessionView } from '../state/session.svelte';
import { client, conversations } from '../state/state';
import { Repository } from './repository.svelte';

afterEach(() => vi.restoreAllMocks());

const file = (path: string, kind: UncommittedFile['kind'] = 'modified'): UncommittedFile => ({ path, kind });

const status = (part: Partial<RepositoryStatus> = {}): RepositoryStatus => ({
  repository: '/r',
  branch: 'main',
  head: 'c1',
  subject: 'Before',
  ahead: 0,
  behind: 0,
  remotes: [],
  hooks: [],
  message: 'Mend it',
  files: [file('a.txt'), file('b.txt')],
  ...part,
});

const refusal = (code: string) => new ApiError(code, {}, 409);

/** A repository over a server that answers as act says. */
function opened(act: (route: string, body: unknown) => unknown) {
  const call = vi.spyOn(client, 'call').mockImplementation(((route: string, { body }: { body?: unknown }) => {
    try {
      return Promise.resolve(act(route, body));
    } catch (thrown) {
      return Promise.reject(thrown as Error);
    }
  }) as typeof client.call);
  return { repository: new Repository('s1'), call };
}

test('what a hook said stays when the list is read again, and goes with the next commit', async () => {
  let fails = true;
  const { repository } = opened((route) => {
    if (!route.includes('commit')) return status();
    if (fails) throw refusal('landing.failed');
    return { commit: 'c2', subject: 'Mend it', branch: 'main', files: 2 };
  });
  await repository.load();
  await repository.commit();
  expect(repository.error?.code).toBe('landing.failed');
  await repository.load(); // the window comes to the front
  expect(repository.error?.code).toBe('landing.failed');
  fails = false;
  await repository.commit();
  expect([repository.error, repository.unread]).toEqual([undefined, undefined]);
});

test('a commit has the chosen files without conflicts, and the words of the person', async () => {
  const { repository, call } = opened((route) =>
    route.includes('commit')
      ? { commit: 'c2', subject: 'Mine', branch: 'main', files: 1 }
      : status({ files: [file('a.txt'), file('b.txt'), file('c.txt', 'conflict')] }),
  );
  await repository.load();
  repository.take('b.txt', false);
  repository.written = 'Mine';
  await repository.commit();
  const body = call.mock.calls.map(([, wish]) => (wish as { body?: unknown }).body).find((one) => one);
  expect(body).toEqual({ head: 'c1', paths: ['a.txt'], message: 'Mine' });
  expect([repository.written, repository.left.size]).toEqual([undefined, 0]);
});

test('nothing is committed while hooks wait for approval, a merge for its end, or no file is chosen', async () => {
  let now = status({ hooks: ['.git/hooks/pre-commit'] });
  const { repository } = opened(() => now);
  await repository.load();
  expect(repository.committable).toBe(false);
  repository.noHooks = true;
  expect(repository.committable).toBe(true);
  repository.takeAll(false);
  expect(repository.committable).toBe(false);
  repository.amend = true; // the message alone
  expect([repository.committable, repository.message]).toEqual([true, 'Before']);
  now = status({ unfinished: 'merge' });
  await repository.load();
  expect(repository.committable).toBe(false);
});

test('a file in part is committed by its text, and whole again once the choice is old', async () => {
  let changed = true;
  const { repository, call } = opened((route) => {
    if (!route.includes('commit')) return status();
    if (changed) throw new ApiError('landing.changed', { path: 'a.txt' }, 409);
    return { commit: 'c2', subject: 'Mend it', branch: 'main', files: 2 };
  });
  await repository.load();
  const part = { digest: 'd1', left: new Set([1]), text: 'one\n' };
  repository.take('a.txt', true, part);
  await repository.commit();
  expect(call).toHaveBeenCalledWith('POST /client/sessions/{id}/repository/commit', {
    path: { id: 's1' },
    body: {
      head: 'c1',
      paths: ['b.txt'],
      parts: [{ path: 'a.txt', digest: 'd1', text: 'one\n' }],
      message: 'Mend it',
    },
  });
  expect([repository.error?.code, repository.parts.size]).toEqual(['landing.changed', 0]);
  changed = false;
  repository.take('a.txt', true, part);
  repository.take('a.txt', false);
  expect([repository.parts.size, repository.left.has('a.txt')]).toEqual([0, true]);
});

test.each([
  ['Here it is:\n\n```\nMend the total\n\nIt was wrong.\n```\n', 'Mend the total\n\nIt was wrong.'],
  ['```text\nfirst\n```\nBetter:\n```text\nsecond\n```', 'second'],
  ['Mend the total', 'Mend the total'],
  [Array.from({ length: 20 }, () => 'words').join('\n'), undefined],
])('the message is taken from the answer %j', async (answer, message) => {
  const { repository } = opened(() => status());
  await repository.load();
  let asked = '';
  vi.spyOn(conversations, 'say').mockImplementation((_, text) => {
    asked = text;
    return Promise.resolve(true);
  });
  await repository.ask();
  expect(asked).toContain('- `a.txt` (modified)\n- `b.txt` (modified)');
  const item = (kind: string, turn: string, text: string) => ({ entry: { kind, turn }, text });
  const items = (more: unknown[]) =>
    [item('agent', 't1', '```\nof an earlier turn\n```'), ...more] as unknown as SessionView['items'];
  repository.answered(items([]), 't1');
  repository.answered(items([item('user', 't2', asked), item('agent', 't2', answer)]), 't2');
  expect([repository.asked, repository.written]).toEqual([asked, undefined]); // it may go on
  repository.answered(items([item('user', 't2', asked), item('agent', 't2', answer)]), undefined);
  expect([repository.asked, repository.written]).toEqual(['', message]);
});
