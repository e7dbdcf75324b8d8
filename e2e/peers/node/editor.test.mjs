// deskhand acp: an editor on the SDK for TypeScript, and the window's API beside it.
import assert from 'node:assert/strict';
import test from 'node:test';
import { mkdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { methods } from '@agentclientprotocol/sdk';
import { editor, place, serve } from './programs.mjs';

const { session } = methods.agent;
const everything = {
  elicitation: { form: {}, url: {} },
  session: { configOptions: { boolean: {} }, notices: {}, compaction: {} },
  _meta: { terminal_output: true },
};

async function open(e, dir) {
  const cwd = join(dir, 'work');
  mkdirSync(cwd, { recursive: true });
  return e.request(session.new, { cwd, mcpServers: [] });
}

test('an editor starts what it needs, and has a conversation', async (t) => {
  const dir = place();
  const e = editor(t, dir);
  const can = await e.initialize();
  assert.equal(can.protocolVersion, 1);
  assert.equal(can.agentCapabilities.loadSession, true);
  const made = await open(e, dir);
  assert.ok(made.sessionId);
  assert.ok(made.modes.availableModes.some(({ id }) => id === made.modes.currentModeId));
  assert.ok(made.configOptions.every(({ type }) => type === 'select'), 'this editor knows nothing else');
  const { stopReason } = await e.prompt(made.sessionId, 'markdown');
  assert.equal(stopReason, 'end_turn');
  assert.match(e.said(), /^#/m);
  assert.ok(e.updates.every(({ sessionId }) => sessionId === made.sessionId));
  assert.ok(e.kinds().includes('available_commands_update'), 'what was said before the session had a name is not lost');
  assert.ok(!e.kinds().includes('user_message_chunk'), 'it knows what it said');
});

test('the window sees the conversation, and what it says is seen in the editor', async (t) => {
  const dir = place();
  const server = await serve(t, dir);
  const e = editor(t, dir);
  await e.initialize(everything);
  const { sessionId } = await open(e, dir);
  await e.prompt(sessionId, 'echo from the editor');
  const seen = await server.call('GET', `sessions/${sessionId}/entries`);
  assert.ok(seen.items.some(({ kind, text }) => kind === 'user' && text === 'echo from the editor'));
  assert.equal((await server.call('GET', `sessions/${sessionId}`)).phase, 'ready');

  await server.call('POST', `sessions/${sessionId}/prompt`, { message: 'thought from the window' });
  await e.until('words of the window', () => e.said('user_message_chunk') === 'thought from the window');
  await e.until('thoughts', () => e.said('agent_thought_chunk'));
  await server.call('PATCH', `sessions/${sessionId}`, { title: 'A better name' });
  await e.until('title', () => e.updates.find(({ update }) => update.title === 'A better name'));

  e.child.kill('SIGKILL');
  await e.child.gone;
  const left = await server.call('GET', `sessions/${sessionId}`);
  assert.match(left.phase, /ready|working/, 'the end of the editor ends nothing');
});

test('whoever answers first counts, and the other dialog goes away', async (t) => {
  const dir = place();
  const server = await serve(t, dir);
  const e = editor(t, dir);
  await e.initialize(everything);
  const { sessionId } = await open(e, dir);

  e.permission = ({ options }) => ({ outcome: { outcome: 'selected', optionId: options.find(({ kind }) => kind === 'allow_once').optionId } });
  assert.equal((await e.prompt(sessionId, 'permission')).stopReason, 'end_turn');
  assert.equal(e.asked[0].params.sessionId, sessionId);
  assert.ok(e.asked[0].params.toolCall.toolCallId);
  const { items } = await server.call('GET', `sessions/${sessionId}/entries`);
  assert.ok(items.some(({ kind }) => kind === 'request'));

  let answer;
  e.permission = (_, signal) =>
    new Promise((resolve) => {
      answer = resolve;
      signal.addEventListener('abort', () => resolve({ outcome: { outcome: 'cancelled' } }));
    });
  const turn = e.prompt(sessionId, 'permission');
  await e.until('second question', () => e.asked.length === 2);
  const [waiting] = (await server.call('GET', 'inbox')).items;
  await server.call('POST', `requests/${waiting.id}/answer`, {
    optionId: waiting.options.find(({ kind }) => kind === 'reject_once').id,
  });
  await e.until('withdrawal', () => e.withdrawn.length === 1);
  assert.equal((await turn).stopReason, 'end_turn');
  assert.ok(answer);

  e.elicitation = ({ mode, requestedSchema }) => (mode === 'form' && requestedSchema.properties ? { action: 'decline' } : { action: 'cancel' });
  assert.equal((await e.prompt(sessionId, 'form')).stopReason, 'end_turn');
  assert.equal(e.asked.at(-1).kind, 'elicitation');
  assert.ok(e.asked.at(-1).params.requestedSchema.properties);
});

test('a question is answered in the form of the editor, or as a choice where it knows no forms', async (t) => {
  const dir = place();
  const server = await serve(t, dir);
  for (const takes of [everything, {}]) {
    const e = editor(t, dir);
    await e.initialize(takes);
    const { sessionId } = await open(e, dir);
    e.elicitation = ({ requestedSchema: { properties } }) => ({
      action: 'accept',
      content: Object.fromEntries(
        Object.entries(properties).map(([name, p]) => [name, p.oneOf ? p.oneOf[0].const : 'my own words']),
      ),
    });
    e.permission = ({ options }) => ({ outcome: { outcome: 'selected', optionId: options.find(({ name }) => name === 'Option A').optionId } });
    assert.equal((await e.prompt(sessionId, 'question')).stopReason, 'end_turn');
    const { requests } = await server.call('GET', `sessions/${sessionId}/entries`);
    assert.equal(requests.find(({ kind }) => kind === 'question').status, 'answered');
    assert.equal(requests.find(({ kind }) => kind === 'question').answeredBy, 'editor');
  }
});

test('modes and settings, from both sides', async (t) => {
  const dir = place();
  const server = await serve(t, dir);
  const e = editor(t, dir);
  await e.initialize(everything);
  const made = await open(e, dir);
  const other = made.modes.availableModes.find(({ id }) => id !== made.modes.currentModeId);
  await e.request(session.setMode, { sessionId: made.sessionId, modeId: other.id });
  const now = await server.call('GET', `sessions/${made.sessionId}`);
  assert.equal(now.configOptions.find(({ category }) => category === 'mode').value, other.id);

  const option = made.configOptions.find(({ type, category }) => type === 'select' && category !== 'mode');
  const values = option.options.flatMap((o) => o.options ?? [o]);
  const value = values.find((v) => v.value !== option.currentValue).value;
  const changed = await e.request(session.setConfigOption, { sessionId: made.sessionId, configId: option.id, value });
  assert.equal(changed.configOptions.find(({ id }) => id === option.id).currentValue, value);
  await assert.rejects(e.request(session.setConfigOption, { sessionId: made.sessionId, configId: option.id, value: 'nonsense' }));

  await server.call('POST', `sessions/${made.sessionId}/config`, { id: option.id, value: option.currentValue });
  await e.until('the setting of the window', () =>
    e.updates.find(
      ({ update }) =>
        update.sessionUpdate === 'config_option_update' &&
        update.configOptions.find(({ id }) => id === option.id).currentValue === option.currentValue,
    ),
  );
});

test('every kind of block reaches the agent, and files are attachments', async (t) => {
  const dir = place();
  const server = await serve(t, dir);
  const e = editor(t, dir);
  await e.initialize(everything);
  const { sessionId } = await open(e, dir);
  const pixel = 'iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==';
  await e.prompt(
    sessionId,
    'attachments of ',
    { type: 'resource_link', name: 'a file', uri: 'file:///tmp/a file.go' },
    ' and ',
    { type: 'resource', resource: { uri: 'file:///tmp/b.go', mimeType: 'text/x-go', text: 'package b\n' } },
    { type: 'image', mimeType: 'image/png', data: pixel },
    { type: 'resource', resource: { uri: 'file:///tmp/c.bin', blob: 'AAEC' } },
  );
  const { items } = await server.call('GET', `sessions/${sessionId}/entries`);
  const asked = items.find(({ kind }) => kind === 'user');
  assert.equal(
    asked.text,
    'attachments of [@a file](file:///tmp/a%20file.go) and [@b.go](file:///tmp/b.go)\n\nfile:///tmp/b.go\n```go\npackage b\n```',
  );
  assert.deepEqual(asked.attachments.map(({ filename }) => filename), ['image.png', 'c.bin']);
  assert.match(e.said(), /image\/png/);
});

test('a turn is stopped, and one that waits behind the window’s is taken back', async (t) => {
  const dir = place();
  const server = await serve(t, dir);
  const e = editor(t, dir);
  await e.initialize(everything);
  const { sessionId } = await open(e, dir);
  const turn = e.prompt(sessionId, 'slow');
  await e.until('first words', () => e.said());
  await e.agent.notify(session.cancel, { sessionId });
  assert.equal((await turn).stopReason, 'cancelled');

  await server.call('POST', `sessions/${sessionId}/prompt`, { message: 'slow' });
  await e.until('words of the window', () => e.said('user_message_chunk') === 'slow');
  const behind = e.prompt(sessionId, 'echo behind');
  const queued = async () => (await server.call('GET', `sessions/${sessionId}/queue`)).items ?? [];
  while (!(await queued()).length);
  await e.agent.notify(session.cancel, { sessionId });
  assert.equal((await behind).stopReason, 'cancelled');
  assert.deepEqual(await queued(), []);
});

test('the end of an agent is an error of the turn, and the next one starts it again', async (t) => {
  const dir = place();
  const e = editor(t, dir);
  await e.initialize(everything);
  const { sessionId } = await open(e, dir);
  await assert.rejects(e.prompt(sessionId, 'crash'), /ended/);
  assert.equal((await e.prompt(sessionId, 'echo again')).stopReason, 'end_turn');
  await assert.rejects(e.prompt(sessionId, 'error'));
});

test('what was said is listed, loaded and resumed, also by another editor when nothing else runs', async (t) => {
  const dir = place();
  const first = editor(t, dir);
  await first.initialize(everything);
  const { sessionId } = await open(first, dir);
  await first.prompt(sessionId, 'terminal');
  await first.prompt(sessionId, 'echo second');
  first.child.stdin.end();
  await first.child.gone;

  const e = editor(t, dir);
  await e.initialize(); // knows little
  const { sessions } = await e.request(session.list, { cwd: join(dir, 'work') });
  assert.deepEqual(sessions.map((s) => s.sessionId), [sessionId]);
  const loaded = await e.request(session.load, { sessionId, cwd: join(dir, 'work'), mcpServers: [] });
  assert.ok(loaded.configOptions.length);
  assert.equal(e.said('user_message_chunk'), 'terminalecho second');
  const content = e.updates.flatMap(({ update }) => (update.sessionUpdate.startsWith('tool_call') && update.content) || []);
  assert.ok(content.length && content.every(({ type }) => type !== 'terminal'), 'it knows no terminals of others');
  assert.ok(content.some((c) => /```console\n[^`]+/.test(c.content?.text)), 'and sees what they wrote');
  const told = e.updates.length;
  await e.request(session.resume, { sessionId, cwd: join(dir, 'work'), mcpServers: [] });
  assert.ok(e.updates.slice(told).every(({ update }) => !/chunk/.test(update.sessionUpdate)), 'resume says nothing again');
  assert.equal((await e.prompt(sessionId, 'echo third')).stopReason, 'end_turn');
  await assert.rejects(
    e.request(session.load, { sessionId: 'nobody', cwd: join(dir, 'work'), mcpServers: [] }),
    (error) => error.code === -32002,
  );
  await e.request(session.delete, { sessionId });
  assert.deepEqual((await e.request(session.list, {})).sessions, []);
});

test('a message of 20 MiB arrives whole', async (t) => {
  const dir = place();
  const e = editor(t, dir);
  await e.initialize(everything);
  const { sessionId } = await open(e, dir);
  await e.prompt(sessionId, 'huge');
  assert.ok(e.said().length >= 20 << 20);
});

test('ten thousand updates arrive in order, none lost', async (t) => {
  const dir = place();
  const e = editor(t, dir);
  await e.initialize(everything);
  const { sessionId } = await open(e, dir);
  await e.prompt(sessionId, 'burst');
  const numbers = [...e.said().matchAll(/\d+/g)].map(Number);
  assert.ok(numbers.length >= 10_000);
  for (let i = 1; i < 10_000; i++) assert.equal(numbers[i], numbers[i - 1] + 1);
});

test('an agent that nobody knows is told of', async (t) => {
  const dir = place();
  const e = editor(t, dir, '--agent', 'nobody');
  await assert.rejects(e.initialize(), /nobody/);
});

test('a Deskhand that ends is followed by the next', async (t) => {
  const dir = place();
  const server = await serve(t, dir);
  const e = editor(t, dir);
  await e.initialize(everything);
  const { sessionId } = await open(e, dir);
  const turn = e.prompt(sessionId, 'slow');
  await e.until('first words', () => e.said());
  server.child.kill('SIGKILL');
  await server.child.gone;
  await assert.rejects(turn, /Deskhand has ended/);
  assert.equal((await e.prompt(sessionId, 'echo after')).stopReason, 'end_turn');
  assert.match(readFileSync(join(dir, 'data', 'owner.json'), 'utf8'), new RegExp(`"pid":\\s*${e.child.pid}`));
});
