import { beforeEach, expect, test } from 'vitest';
import { allProjects } from '../api/scope';
import { firstChosen, remember } from './chosen';

// A choice of an earlier test counts no more.
beforeEach(() => remember({ scope: 'project', directory: '' }, '/nowhere'));

test('a link comes first, then the open project, then one that is known', () => {
  expect(firstChosen('/a', '/b', ['/c'])).toEqual({ scope: 'project', directory: '/a' });
  expect(firstChosen(undefined, '/b', ['/c'])).toEqual({ scope: 'project', directory: '/b' });
  expect(firstChosen(undefined, undefined, [undefined, '/c'])).toEqual({ scope: 'project', directory: '/c' });
  expect(firstChosen(undefined, undefined, [])).toEqual({ scope: 'project', directory: '' });
  expect(firstChosen(allProjects, '/b', [])).toEqual({ scope: 'all', directory: '/b' });
});

test('a choice counts for as long as the same project is open', () => {
  remember({ scope: 'all', directory: '/other' }, '/b');
  expect(firstChosen(undefined, '/b', [])).toEqual({ scope: 'all', directory: '/other' });
  expect(firstChosen(undefined, '/x', [])).toEqual({ scope: 'project', directory: '/x' });
  expect(firstChosen('/a', '/b', [])).toEqual({ scope: 'project', directory: '/a' });
});
