import { expect, test } from 'vitest';
import { fakePage, login } from '../test/page';

const page = fakePage();

test('a login is followed by events, and asked for again after a gap', async () => {
  await page.tell('login.upsert', login, 2);
  expect(page.logins.byId.get('l1')?.state).toBe('running');
  await page.feed({ gen: 'g2', seq: 1, reset: true, events: [] });
  expect(page.logins.byId.get('l1')?.state).toBe('done');
});
