// The protocol's own transport, at /acp/{agent}: by the SDK's client for HTTP, by its client for WebSocket, and by hand.
import assert from 'node:assert/strict';
import test from 'node:test';
import { mkdirSync } from 'node:fs';
import { join } from 'node:path';
import { methods } from '@agentclientprotocol/sdk';
import { createHttpStream } from '@agentclientprotocol/sdk/experimental/http-client';
import { createWebSocketStream } from '@agentclientprotocol/sdk/experimental/ws-client';
import { Editor, place, serve } from './programs.mjs';

const { session } = methods.agent;

// Node's own WebSocket takes headers in the place of protocols.
class Socket extends WebSocket {
  constructor(url, _protocols, { headers }) {
    super(url, { headers });
  }
}

const streams = {
  http: (url, token) => createHttpStream(url, { headers: { Authorization: `Bearer ${token}` } }),
  websocket: (url, token) =>
    createWebSocketStream(url.replace('http:', 'ws:'), { WebSocket: Socket, headers: { Authorization: `Bearer ${token}` } }),
};

async function running(server) {
  const res = await fetch(`${server.url}/v1/acp`, { headers: { Authorization: `Bearer ${server.token}` } });
  return (await res.json()).servers.filter(({ status }) => status === 'running');
}

async function gone(server) {
  while ((await running(server)).length);
}

for (const [name, stream] of Object.entries(streams)) {
  test(`${name}: a conversation, with a permission, and two sessions at once`, async (t) => {
    const dir = place();
    const server = await serve(t, dir);
    const cwd = join(dir, 'work');
    mkdirSync(cwd);
    const e = new Editor(stream(`${server.url}/acp/mock`, server.token));
    e.permission = ({ options }) => ({
      outcome: { outcome: 'selected', optionId: options.find(({ kind }) => kind === 'allow_once').optionId },
    });
    assert.equal((await e.initialize()).protocolVersion, 1);
    const [{ sessionId: one }, { sessionId: two }] = await Promise.all([
      e.request(session.new, { cwd, mcpServers: [] }),
      e.request(session.new, { cwd, mcpServers: [] }),
    ]);
    const both = await Promise.all([e.prompt(one, 'permission'), e.prompt(two, 'echo two')]);
    assert.deepEqual(both.map(({ stopReason }) => stopReason), ['end_turn', 'end_turn']);
    assert.equal(e.asked[0].params.sessionId, one);
    for (const id of [one, two]) assert.ok(e.updates.some(({ sessionId }) => sessionId === id));

    const turn = e.prompt(one, 'slow');
    await e.until('words', () => e.updates.at(-1).sessionId === one);
    await e.agent.notify(session.cancel, { sessionId: one });
    assert.equal((await turn).stopReason, 'cancelled');
    await assert.rejects(e.request(session.load, { sessionId: 'nobody', cwd, mcpServers: [] }));
    assert.equal((await running(server)).length, 1);
    e.connection.close();
    await gone(server);
  });

  test(`${name}: ten thousand updates arrive in order, and a message of 20 MiB`, async (t) => {
    const dir = place();
    const server = await serve(t, dir);
    const e = new Editor(stream(`${server.url}/acp/mock`, server.token));
    await e.initialize();
    const { sessionId } = await e.request(session.new, { cwd: dir, mcpServers: [] });
    await e.prompt(sessionId, 'burst');
    const numbers = [...e.said().matchAll(/\d+/g)].map(Number);
    for (let i = 1; i < 10_000; i++) assert.equal(numbers[i], numbers[i - 1] + 1);
    await e.prompt(sessionId, 'huge');
    assert.ok(e.said().length > 20 << 20);
    e.connection.close();
    await gone(server);
  });

  test(`${name}: an agent that ends closes the connection, and one that is unknown is told of`, async (t) => {
    const dir = place();
    const server = await serve(t, dir);
    const e = new Editor(stream(`${server.url}/acp/mock`, server.token));
    await e.initialize();
    const { sessionId } = await e.request(session.new, { cwd: dir, mcpServers: [] });
    await assert.rejects(e.prompt(sessionId, 'crash'));
    await e.connection.closed;
    await gone(server);
    await assert.rejects(new Editor(stream(`${server.url}/acp/nobody`, server.token)).initialize());
    await assert.rejects(new Editor(stream(`${server.url}/acp/mock`, 'wrong')).initialize());
    assert.deepEqual(await running(server), []);
  });
}
