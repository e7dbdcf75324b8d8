import { beforeEach, expect, test, vi } from 'vitest';
import { ApiError } from '../api/errors';
import type { Client } from '../api/client';
import type { AgentSession, Session } from '../api/records';
import { session } from '../test/records';
import { Imports } from './imports.svelte';

const client = {
  agentSessions: vi.fn<(agent: string, wanted: { before?: string }) => ReturnType<Client['agentSessions']>>(),
  importSession: vi.fn<(body: { acpSessionId: string }) => Promise<Session>>(),
};
const theirs = (id: string, part: Partial<AgentSession> = {}): AgentSession => ({
  acpSessionId: id,
  title: `Title ${id}`,
  cwd: '/home/ada/app',
  ...part,
});

let imports: Imports;
beforeEach(() => {
  client.agentSessions.mockReset();
  client.importSession.mockReset();
  imports = new Imports('mate', client);
});

const ids = () => imports.items.map((item) => item.acpSessionId);

test('a list goes on, and tells nothing twice', async () => {
  client.agentSessions.mockResolvedValueOnce({
    items: [theirs('a'), theirs('b')],
    next: 'n',
    supported: true,
  });
  await imports.ask('/home/ada/app');
  client.agentSessions.mockResolvedValueOnce({ items: [theirs('b'), theirs('c')], supported: true });
  await imports.more();
  expect(ids()).toEqual(['a', 'b', 'c']);
  expect(client.agentSessions.mock.lastCall?.[1]).toEqual({ directory: '/home/ada/app', before: 'n' });
  await imports.more();
  expect(client.agentSessions).toHaveBeenCalledTimes(2);
});

test('what is chosen is taken one by one; one that fails keeps none of the others', async () => {
  client.agentSessions.mockResolvedValueOnce({
    items: [theirs('a'), theirs('b', { title: '' }), theirs('c'), theirs('d', { session: 's9' })],
    supported: true,
  });
  await imports.ask('');
  expect(imports.free.map((item) => item.acpSessionId)).toEqual(['a', 'b', 'c']);
  for (const id of ['a', 'b', 'c']) imports.choose(id, true);
  client.importSession.mockImplementation(({ acpSessionId }) =>
    acpSessionId === 'a'
      ? Promise.reject(new ApiError('directory.missing'))
      : Promise.resolve(session({ id: `new ${acpSessionId}` })),
  );
  const taken = await imports.take(['a', 'b', 'c', 'd']);
  expect(taken.map((one) => one.id)).toEqual(['new b', 'new c']);
  expect(imports.failed.get('a')?.code).toBe('directory.missing');
  expect([...imports.chosen]).toEqual(['a']);
  expect(imports.free.map((item) => item.acpSessionId)).toEqual(['a']);
  expect(client.importSession.mock.calls[1]?.[0]).toEqual({
    agent: 'mate',
    acpSessionId: 'b',
    cwd: '/home/ada/app',
  });
  expect(imports.taking).toBeUndefined();
});

test('a conversation is taken with the directories that it works in beside its own', async () => {
  const directories = ['/home/ada/lib'];
  client.agentSessions.mockResolvedValueOnce({ items: [theirs('a', { directories })], supported: true });
  await imports.ask('');
  client.importSession.mockResolvedValueOnce(session({ id: 'new a' }));
  await imports.take(['a']);
  expect(client.importSession.mock.lastCall?.[0]).toMatchObject({ acpSessionId: 'a', directories });
});

test('a list that nobody waits for any more changes nothing', async () => {
  let arrive!: (page: Awaited<ReturnType<Client['agentSessions']>>) => void;
  client.agentSessions.mockReturnValueOnce(new Promise((done) => (arrive = done)));
  const asked = imports.ask('');
  imports.close();
  arrive({ items: [theirs('a')], supported: true });
  await asked;
  expect([ids(), imports.asking]).toEqual([[], false]);
});

test('an agent that does not tell is no failure, one that refuses is', async () => {
  client.agentSessions.mockResolvedValueOnce({ items: [], supported: false });
  await imports.ask('');
  expect([imports.supported, imports.error]).toEqual([false, undefined]);
  client.agentSessions.mockRejectedValueOnce(new ApiError('agent.auth_required'));
  await imports.ask('');
  expect(imports.error?.code).toBe('agent.auth_required');
});
