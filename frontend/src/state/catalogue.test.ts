import { describe, expect, test } from 'vitest';
import { fakePage } from '../test/page';
import { agent } from '../test/records';

const page = fakePage();

describe('agents', () => {
  test('are installed by what events tell, and the end is announced', async () => {
    await page.catalogue.perform(agent({ pinned: '0.100.0' }), 'install');
    expect(page.calls.at(-1)).toMatchObject({
      path: '/client/agents/claude/install',
      body: { version: '0.100.0' },
    });
    await page.tell('install.progress', { agent: 'claude', step: 'download', bytes: 5, log: 'npm' }, 2);
    expect(page.catalogue.agents[0]?.installing).toEqual({ step: 'download', bytes: 5 });
    await page.tell('agent.upsert', agent({ state: 'ready', version: '0.100.0' }), 3);
    expect(page.catalogue.agents[0]).not.toHaveProperty('installing');
    expect(page.toasts.announcement).toBe('Claude Code is installed');
  });

  test('that are being installed are so after the page was loaded again', async () => {
    page.stored.agents = [agent({ installing: { step: 'download', bytes: 5 } })];
    await page.feed({ gen: 'g', seq: 90, reset: true, events: [] });
    expect(page.catalogue.agents[0]?.installing?.step).toBe('download');
  });

  test('of the rest of the catalogue come when they are asked for, and are kept up to date', async () => {
    expect(page.catalogue.book.more).toBeUndefined();
    await page.catalogue.loadRest();
    expect(page.catalogue.book.more?.map((one) => one.id)).toEqual(['cline']);
    await page.feed({ gen: 'g', seq: 90, reset: true, events: [] });
    expect(page.calls.map((call) => call.path)).toContain('/client/agents?all=true');
    expect(page.catalogue.book.more?.map((one) => one.id)).toEqual(['cline']);
  });

  test('are removed and cancelled by the calls for it; what is refused is thrown to the card', async () => {
    await page.catalogue.perform(agent(), 'cancel');
    await page.catalogue.perform(agent(), 'remove');
    expect(page.calls.slice(-2).map(({ method, path }) => [method, path])).toEqual([
      ['DELETE', '/client/agents/claude/install'],
      ['DELETE', '/client/agents/claude'],
    ]);
    page.refuse = () => ({ code: 'agent.in_use', params: { agent: 'claude' } });
    await expect(page.catalogue.perform(agent(), 'remove')).rejects.toMatchObject({ code: 'agent.in_use' });
    expect(page.toasts.list).toEqual([]);
  });
});
