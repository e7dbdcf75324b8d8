import { describe, expect, test } from 'vitest';
import { fakePage } from '../test/page';
import { session } from '../test/records';

const page = fakePage();

describe('the machine', () => {
  test('is told by the snapshots, then by events', async () => {
    expect(page.machine.processes).toEqual({ agents: 1, processes: 1, rssBytes: 20, selfRssBytes: 10 });
    expect(page.preferences.settings?.memoryBudgetMiB).toBe(4096);
    await page.tell('process.upsert', { agents: 2, processes: 5, rssBytes: 50, selfRssBytes: 11 }, 2);
    expect(page.machine.processes?.agents).toBe(2);
    await page.tell('settings.upsert', { memoryBudgetMiB: 0 }, 3);
    expect(page.preferences.settings?.memoryBudgetMiB).toBe(0);
  });

  test('that does not tell keeps nobody from their conversations', async () => {
    page.refuse = (path) => (/processes|settings/.test(path) ? { code: 'internal' } : undefined);
    page.stored.sessions = [session({ id: 's2' })];
    await page.feed({ gen: 'g2', seq: 1, reset: true, events: [] });
    expect(page.connection.link).toBe('live');
    expect(page.conversations.ordered.map((one) => one.id)).toEqual(['s2']);
  });
});

test('what is kept and what is verified is told by events', async () => {
  await page.tell('storage.upsert', { sessions: 7, rebuilding: { done: 1, total: 7 } }, 2);
  await page.tell('verify.upsert', { state: 'running', done: 1, total: 7, findings: [] }, 3);
  expect([page.machine.storage?.rebuilding?.done, page.machine.verification?.state]).toEqual([1, 'running']);
});

test('how the line to Discord is comes with the start and by events', async () => {
  expect(page.calls.some(({ path }) => path === '/client/discord')).toBe(true);
  await page.tell('discord.upsert', { enabled: true, status: 'reconnecting' }, 2);
  expect(page.machine.discord?.status).toBe('reconnecting');
});
