// Resuming: the SDK keeps the events of a session and gives them to a new agent as text before the next prompt.
import assert from "node:assert/strict";
import { test } from "node:test";
import { InMemorySessionPersistDriver } from "sandbox-agent";
import { Runtime, turn } from "./runtime.mjs";

const preface = "Previous session history is replayed below as JSON-RPC envelopes. Use it as context before responding to the latest user prompt.";

/** A session with a turn behind it, and what the SDK has kept of it. */
async function told(runtime, persist) {
  const sdk = await runtime.connect({ persist });
  const session = await sdk.createSession({ id: "story", agent: "mock", cwd: runtime.work });
  await turn(session, "echo once upon a time");
  const { items } = await persist.listEvents({ sessionId: "story" });
  return { sdk, before: session.toRecord(), items };
}

/** Resumes with a new client, and checks what the agent is given and what is kept. */
async function takenUp(runtime, persist, { before, items }) {
  const sdk = await runtime.connect({ persist });
  const session = await sdk.resumeSession("story");
  assert.equal(session.id, "story");
  assert.notEqual(session.agentSessionId, before.agentSessionId);
  assert.notEqual(session.lastConnectionId, before.lastConnectionId);
  assert.deepEqual(session.toRecord().sessionInit, before.sessionInit);

  const { text, response } = await turn(session, "and then?");
  assert.equal(response.stopReason, "end_turn");
  // The demo agent repeats the first line of the first block and counts the others.
  assert.ok(text.startsWith(`You wrote:\n\n> ${preface}\n\nWith it came:\n\n- text, ${"and then?".length} bytes\n`), text);

  const { items: all } = await persist.listEvents({ sessionId: "story", limit: 1000 });
  assert.deepEqual(all.slice(0, items.length), items);
  assert.deepEqual(all.map(({ eventIndex }) => eventIndex), all.map((_, index) => index + 1));
  const prompt = all.findLast(({ payload }) => payload.method === "session/prompt").payload.params;
  assert.equal(prompt.sessionId, session.agentSessionId);
  assert.deepEqual(prompt.prompt[1], { type: "text", text: "and then?" });
  const [first, ...lines] = prompt.prompt[0].text.trimEnd().split("\n");
  assert.equal(first, preface);
  assert.deepEqual(lines.map((line) => JSON.parse(line)), items.map(({ createdAt, sender, payload }) => ({ createdAt, sender, payload })));

  // It is told once.
  const again = await turn(session, "echo");
  assert.ok(!again.text.includes(preface));
  return sdk;
}

test("a new client takes up the session of one that was disposed", async (t) => {
  const runtime = await Runtime.open(t);
  const persist = new InMemorySessionPersistDriver();
  const story = await told(runtime, persist);
  await story.sdk.dispose();
  assert.deepEqual(await runtime.instances(), []);
  await takenUp(runtime, persist, story);
  assert.equal((await runtime.instances()).length, 1);
});

test("a new client takes up the session after the server was killed and started again", async (t) => {
  const runtime = await Runtime.open(t);
  const persist = new InMemorySessionPersistDriver();
  const story = await told(runtime, persist);
  // What the SDK has sent without waiting for it is answered by then; cut off, it is a rejection that nobody handles.
  for (let n = 0; n < 5; n++) await runtime.instances();
  await runtime.kill();
  await runtime.gone();
  await runtime.start();
  await takenUp(runtime, persist, story);
});

test("resumeOrCreateSession makes a session once and takes it up after", async (t) => {
  const runtime = await Runtime.open(t);
  const persist = new InMemorySessionPersistDriver();
  const ask = { id: "either", agent: "mock", cwd: runtime.work, mode: "plan" };
  const first = await runtime.connect({ persist });
  const made = await first.resumeOrCreateSession(ask);
  assert.equal((await made.getModes()).currentModeId, "plan");
  const { agentSessionId } = made;
  assert.equal((await first.resumeOrCreateSession(ask)).agentSessionId, agentSessionId);
  await first.dispose();

  const second = await runtime.connect({ persist });
  const resumed = await second.resumeOrCreateSession(ask);
  assert.notEqual(resumed.agentSessionId, agentSessionId);
  assert.equal((await resumed.getModes()).currentModeId, "plan");
  assert.match((await turn(resumed, "hello")).text, /In \*\*plan mode\*\* I change nothing\./);
  await assert.rejects(second.resumeSession("nobody"), { message: "session 'nobody' not found" });
});

test("a prompt on a session of an earlier client resumes it by itself", async (t) => {
  const runtime = await Runtime.open(t);
  const persist = new InMemorySessionPersistDriver();
  const story = await told(runtime, persist);
  await story.sdk.dispose();
  const sdk = await runtime.connect({ persist });
  const session = await sdk.getSession("story");
  const { text } = await turn(session, "and then?");
  assert.ok(text.startsWith(`You wrote:\n\n> ${preface}`), text);
  assert.notEqual(session.agentSessionId, story.before.agentSessionId);
});
