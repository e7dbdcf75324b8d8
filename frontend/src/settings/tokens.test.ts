import { expect, test } from 'vitest';
import { wishOf } from './tokens';

test('a token is asked for with what was chosen', () => {
  const now = Date.parse('2026-01-31T12:00:00Z');
  expect(wishOf(' CI ', { runtime: true, client: false }, 7, now)).toEqual({
    name: 'CI',
    scopes: ['runtime'],
    expiresAt: '2026-02-07T12:00:00.000Z',
  });
  expect(wishOf('x', { runtime: true, client: true }, 0, now)).toEqual({
    name: 'x',
    scopes: ['runtime', 'client'],
  });
});
