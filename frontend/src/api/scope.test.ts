import { expect, test } from 'vitest';
import { allProjects, inDirectory, scopeOf } from './scope';

test('a call is about a directory or about all projects', () => {
  expect(scopeOf('/w')).toEqual({ directory: '/w' });
  expect(scopeOf(allProjects)).toEqual({ scope: 'all' });
});

test('an agent gets the entries of its directory before those of all projects', async () => {
  const lists: Record<string, { items: { name: string; at: string }[]; path: string; problem?: string }> = {
    '/w': { items: [{ name: 'files', at: 'here' }], path: '/w/mcp.json' },
    [allProjects]: {
      items: [
        { name: 'files', at: 'all' },
        { name: 'notes', at: 'all' },
      ],
      path: '/c/mcp.json',
      problem: 'line 2',
    },
  };
  const got = await inDirectory((of) => Promise.resolve(lists[of] ?? { items: [], path: '' }), '/w');
  expect(got).toEqual({
    items: [
      { name: 'files', at: 'here' },
      { name: 'notes', at: 'all' },
    ],
    path: '/w/mcp.json',
    problem: 'line 2',
  });
});
