import { afterEach, expect, test, vi } from 'vitest';
import { ApiError } from '../api/errors';
import type { BaseStatus, RepositoryStatus } from '../api/records';
import { client, conversations, toasts } from '../state/state';
import { Repository } from './repository.svelte';

afterEach(() => vi.restoreAllMocks());

const status: RepositoryStatus = {
  repository: '/r',
  branch: 'work',
  head: 'c2',
  ahead: 0,
  behind: 0,
  remotes: [],
  hooks: [],
  message: 'Mend it',
  files: [],
};

const base = (part: Partial<BaseStatus> = {}): BaseStatus => ({
  base: 'main',
  bases: ['main', 'older'],
  remote: false,
  baseCommit: 'b1',
  head: 'c2',
  ahead: 2,
  behind: 0,
  conflicts: [],
  files: [],
  message: 'Mend it',
  ...part,
});

/** A repository that was compared, over a server whose comparison and whose answers to changes are given. */
async function compared(part: Partial<BaseStatus>, change: (route: string) => unknown = () => ({})) {
  const call = vi.spyOn(client, 'call').mockImplementation(((route: string) => {
    try {
      if (route.endsWith('/base')) return Promise.resolve(base(part));
      return Promise.resolve(route.startsWith('GET') ? status : change(route));
    } catch (thrown) {
      return Promise.reject(thrown as Error);
    }
  }) as typeof client.call);
  const repository = new Repository('s1');
  await Promise.all([repository.load(), repository.compare()]);
  return { repository, call };
}

test.each([
  ['commits to merge', {}, 'merge', true],
  ['no commit', { ahead: 0 }, 'merge', false],
  ['conflicts', { behind: 1, conflicts: ['a'] }, 'merge', false],
  ['a base of a remote', { remote: true }, 'merge', false],
  ['a base with other commits, merged', { behind: 1 }, 'merge', true],
  ['a base with other commits, forwarded', { behind: 1 }, 'forward', false],
  ['no words for a squash', { message: '' }, 'squash', false],
  ['no words for a rebase', { message: '' }, 'rebase', true],
] as const)('%s: may be merged or not', async (_, part, how, may) => {
  const { repository } = await compared({
    ...part,
    conflicts: [...('conflicts' in part ? part.conflicts : [])],
  });
  repository.how = how;
  expect(repository.mergeable).toBe(may);
});

test('a merge names what was shown, and forgets the words of the person once it is made', async () => {
  const { repository, call } = await compared({}, () => ({ base: 'main', commit: 'm1' }));
  repository.mergeWritten = 'Mine';
  await repository.merge();
  expect(call).toHaveBeenCalledWith('POST /client/sessions/{id}/repository/merge', {
    path: { id: 's1' },
    body: { base: 'main', baseCommit: 'b1', head: 'c2', how: 'merge', message: 'Mine' },
  });
  expect(repository.mergeWritten).toBeUndefined();
});

test('what is in the way is stashed only when the person says so', async () => {
  const { repository, call } = await compared({}, () => {
    throw new ApiError('landing.in_the_way', { path: '/main', paths: 'a.txt' }, 409);
  });
  repository.mergeWritten = 'Mine';
  await repository.merge();
  expect([repository.error?.code, repository.mergeWritten]).toEqual(['landing.in_the_way', 'Mine']);
  expect(JSON.stringify(call.mock.calls)).not.toContain('stash');
  await repository.merge(true);
  expect(JSON.stringify(call.mock.lastCall)).toContain('"stash":true');
});

test('conflicts of an update go to the agent, in words', async () => {
  const { repository } = await compared({ behind: 1, conflicts: ['a.txt'] }, () => ({
    commit: 'c2',
    conflicts: ['a.txt', 'b.txt'],
  }));
  const said = vi.spyOn(conversations, 'say').mockResolvedValue(true);
  const told = vi.spyOn(toasts, 'show');
  await repository.update('merge', true);
  expect(said.mock.calls[0]?.[1]).toContain('- `a.txt`\n- `b.txt`');
  expect(told).toHaveBeenCalledWith({ text: 'The agent was asked to resolve 2 files', tone: 'info' });
});

test('a base that is gone is not asked for again', async () => {
  const asked: unknown[] = [];
  vi.spyOn(client, 'call').mockImplementation(((_: string, options: { query?: { base?: string } }) => {
    asked.push(options.query?.base);
    return options.query?.base === 'gone'
      ? Promise.reject(new ApiError('landing.base', { base: 'gone' }, 409))
      : Promise.resolve(base());
  }) as typeof client.call);
  const repository = new Repository('s1');
  await repository.compare('gone');
  expect(repository.uncompared?.code).toBe('landing.base');
  await repository.compare();
  expect([asked, repository.base?.base, repository.uncompared]).toEqual([
    ['gone', undefined],
    'main',
    undefined,
  ]);
});
