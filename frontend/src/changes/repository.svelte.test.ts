import { afterEach, expect, test, vi } from 'vitest';
import { ApiError } from '../api/errors';
import type { RepositoryStatus, UncommittedFile } from '../api/records';
import { client } from '../state/state';
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
