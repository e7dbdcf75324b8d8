// Sessions: made, prompted, set, ended.
import assert from "node:assert/strict";
import fs from "node:fs";
import path from "node:path";
import { test } from "node:test";
import { pathToFileURL } from "node:url";
import { AcpRpcError, UnsupportedSessionCategoryError, UnsupportedSessionConfigOptionError, UnsupportedSessionValueError } from "sandbox-agent";
import { blocks, failure, kindOf, Runtime, Tap, textOf, turn, until } from "./runtime.mjs";

/** What echo answers: the prompt as the agent got it. */
const echoed = (text) => JSON.parse(/^```json\n(.*)\n```$/s.exec(text)[1]);

test("createSession starts one agent and knows its modes and options", async (t) => {
  const runtime = await Runtime.open(t);
  const tap = new Tap();
  const sdk = await runtime.connect({ fetch: tap.fetch });
  const before = Date.now();
  const session = await sdk.createSession({ id: "notes", agent: "mock", cwd: runtime.work });
  const record = session.toRecord();
  assert.equal(record.id, "notes");
  assert.equal(record.agent, "mock");
  assert.match(record.agentSessionId, /^[0-9a-f-]{36}$/);
  assert.deepEqual(record.sessionInit, { cwd: runtime.work, mcpServers: [] });
  assert.equal(record.modes.currentModeId, "ask");
  assert.deepEqual(record.modes.availableModes.map(({ id }) => id), ["ask", "code", "plan"]);
  assert.deepEqual(record.configOptions.map(({ id, currentValue }) => [id, currentValue]), [
    ["mode", "ask"], ["model", "demo-large"], ["thought_level", "low"], ["brief", "off"],
  ]);

  const { servers } = await sdk.listAcpServers();
  assert.equal(servers.length, 1);
  const [{ serverId, createdAtMs, pid, ...rest }] = servers;
  assert.match(serverId, /^sdk-mock-[0-9a-f-]{36}$/);
  assert.deepEqual(rest, { agent: "mock", status: "running" });
  assert.deepEqual(runtime.agentProcesses().map((process) => process.pid), [pid]);
  const jumps = process.env.CLOCK_JUMPS ? 366 * 24 * 3600e3 : 0; // see part clock of build/test.sh
  assert.ok(before - jumps <= createdAtMs && createdAtMs <= Date.now() + jumps, `${createdAtMs}`);

  // The stream is asked for before the first message that makes the instance; only that one names the agent.
  const at = `/v1/acp/${serverId}`;
  assert.deepEqual(tap.requests, ["GET /v1/health", `GET ${at}`, `POST ${at}?agent=mock`, `POST ${at}`, "GET /v1/acp"]);
});

test("a prompt brings the agent's answer, and the agent the prompt as it was", async (t) => {
  const runtime = await Runtime.open(t);
  const sdk = await runtime.connect();
  const session = await sdk.createSession({ agent: "mock", cwd: runtime.work });
  const prompt = ["echo, äöü 漢字 🎉 \u2028 \"quotes\" <&>", "and a second block"];
  const { response, text } = await turn(session, ...prompt);
  assert.equal(response.stopReason, "end_turn");
  assert.deepEqual(Object.keys(response.usage).sort(), ["inputTokens", "outputTokens", "totalTokens"]);
  assert.deepEqual(echoed(text), { prompt: blocks(...prompt) });
});

test("the stream has all in the agent's order, without a gap and without a repeat", async (t) => {
  const runtime = await Runtime.open(t);
  const tap = new Tap();
  const sdk = await runtime.connect({ fetch: tap.fetch });
  const session = await sdk.createSession({ id: "a", agent: "mock", cwd: runtime.work });
  const turns = [await turn(session, "echo"), await turn(session, "diff")];
  assert.deepEqual(tap.events.map(({ event }) => event), tap.events.map(() => "message"));
  assert.deepEqual(tap.events.map(({ id }) => id), tap.events.map((_, index) => index + 1));
  const chunks = (n) => Array(n).fill("agent_message_chunk");
  const texts = tap.events.filter(({ message }) => kindOf(message) === "agent_message_chunk").length - 1;
  assert.deepEqual(tap.events.map(({ message }) => kindOf(message)), [
    "result", "result", "available_commands_update", // initialize, session/new
    "session_info_update", ...chunks(1), "usage_update", "result", // echo
    "tool_call", "tool_call_update", ...chunks(texts), "usage_update", "result", // diff
  ]);
  assert.deepEqual(tap.events.filter(({ message }) => "result" in message).map(({ message }) => message.id), [0, 1, 2, 3]);

  // What the SDK has kept is the same, and once: what it sent, and what came.
  const { items } = await sdk.getEvents({ sessionId: "a", limit: 1000 });
  assert.deepEqual(items.map(({ eventIndex }) => eventIndex), items.map((_, index) => index + 1));
  const from = (who) => items.filter(({ sender }) => sender === who).map(({ payload }) => payload);
  assert.deepEqual(from("client").map(({ method }) => method), ["session/new", "session/prompt", "session/prompt"]);
  const sorted = (messages) => messages.map((message) => JSON.stringify(message)).sort();
  assert.deepEqual(sorted(from("agent")), sorted(tap.events.slice(1).map(({ message }) => message)));
  assert.equal(turns[1].text, "This is how an edit looks. It is an example: no file was touched.");
});

test("when a prompt returns, the updates of its turn are there", async (t) => {
  const runtime = await Runtime.open(t);
  const tap = new Tap();
  const acp = runtime.acp("order", { fetch: tap.fetch });
  await acp.initialize();
  const { sessionId } = await acp.newSession({ cwd: runtime.work, mcpServers: [] });
  const usages = () => tap.events.filter(({ message }) => kindOf(message) === "usage_update").length;
  let overtaken = 0;
  for (let n = 0; n < 20; n++) {
    await acp.prompt({ sessionId, prompt: blocks("echo") });
    // The stream was written first, but a client that finds both sockets readable at once may read them in either order.
    for (let turns = 0; turns < 3 && usages() <= n; turns++) await new Promise(setImmediate);
    if (usages() <= n) overtaken++;
    await until("the updates of the turn", () => usages() > n);
  }
  // The answer waits 100 ms for a reader that lags, which a busy machine may pass. Unordered, every second answer is the first.
  assert.ok(overtaken <= 2, `${overtaken} of 20 POSTs overtook the stream`);
});

test("ten thousand updates in a burst arrive once each, in their order", async (t) => {
  const runtime = await Runtime.open(t);
  const tap = new Tap();
  const sdk = await runtime.connect({ fetch: tap.fetch });
  const session = await sdk.createSession({ agent: "mock", cwd: runtime.work });
  const { text } = await turn(session, "burst");
  const wanted = Array.from({ length: 10_000 }, (_, index) => `${index + 1}\n`).join("") + "That were 10000 updates.";
  assert.equal(text, wanted);
  assert.equal(textOf(tap.events.map(({ message }) => message)), wanted);
  assert.deepEqual(tap.events.map(({ id }) => id), tap.events.map((_, index) => index + 1));
});

test("setMode changes the mode, and one that does not exist is the SDK's error", async (t) => {
  const runtime = await Runtime.open(t);
  const sdk = await runtime.connect();
  const session = await sdk.createSession({ id: "modes", agent: "mock", cwd: runtime.work });
  assert.deepEqual(await session.setMode("plan"), {});
  assert.equal((await session.getModes()).currentModeId, "plan");
  assert.equal((await session.getConfigOptions()).find(({ id }) => id === "mode").currentValue, "plan");
  assert.match((await turn(session, "hello")).text, /In \*\*plan mode\*\* I change nothing\./);

  await assert.rejects(session.setMode("nope"), failure(UnsupportedSessionValueError, {
    sessionId: "modes", category: "mode", configId: "mode", requestedValue: "nope", allowedValues: ["ask", "code", "plan"],
  }));
  assert.equal((await session.getModes()).currentModeId, "plan");
  // A mode that the agent goes to by itself is known as well.
  await turn(session, "switch");
  await until("the agent's own mode", async () => (await sdk.getSessionModes("modes")).currentModeId === "ask");
});

test("setModel and setThoughtLevel change what the agent does; values that do not exist are the SDK's errors", async (t) => {
  const runtime = await Runtime.open(t);
  const sdk = await runtime.connect();
  const session = await sdk.createSession({ id: "settings", agent: "mock", cwd: runtime.work, mode: "plan" });
  const valueOf = async (id) => (await session.getConfigOptions()).find((option) => option.id === id).currentValue;

  const set = await session.setModel("demo-small");
  assert.equal(set.configOptions.find(({ id }) => id === "model").currentValue, "demo-small");
  assert.equal(await valueOf("model"), "demo-small");
  await session.setThoughtLevel("off");
  assert.equal(await valueOf("thought_level"), "off");
  const thoughtless = await turn(session, "hello");
  assert.equal(thoughtless.messages.find((message) => kindOf(message) === "usage_update").params.update.size, 32_000);
  assert.ok(!thoughtless.messages.some((message) => kindOf(message) === "agent_thought_chunk"));
  await session.setThoughtLevel("high");
  assert.ok((await turn(session, "hello")).messages.some((message) => kindOf(message) === "agent_thought_chunk"));

  await assert.rejects(session.setModel("gpt"), failure(UnsupportedSessionValueError, {
    sessionId: "settings", category: "model", configId: "model", requestedValue: "gpt", allowedValues: ["demo-large", "demo-small", "demo-classic"],
  }));
  await assert.rejects(session.setThoughtLevel("deep"), failure(UnsupportedSessionValueError, {
    sessionId: "settings", category: "thought_level", configId: "thought_level", requestedValue: "deep", allowedValues: ["off", "low", "high"],
  }));
  await session.setConfigOption("brief", "on");
  assert.equal(await valueOf("brief"), "on");
  await assert.rejects(session.setConfigOption("colour", "red"), failure(UnsupportedSessionConfigOptionError, {
    sessionId: "settings", configId: "colour", availableConfigIds: ["mode", "model", "thought_level", "brief"],
  }));
});

test("a session can be made with its mode, model and thought level, and not with a model that does not exist", async (t) => {
  const runtime = await Runtime.open(t);
  const sdk = await runtime.connect();
  const made = await sdk.createSession({ agent: "mock", cwd: runtime.work, mode: "code", model: "demo-classic", thoughtLevel: "high" });
  assert.deepEqual((await made.getConfigOptions()).slice(0, 3).map(({ currentValue }) => currentValue), ["code", "demo-classic", "high"]);
  assert.equal((await made.getModes()).currentModeId, "code");

  await assert.rejects(sdk.createSession({ id: "never", agent: "mock", cwd: runtime.work, model: "gpt" }), UnsupportedSessionValueError);
  assert.ok((await sdk.getSession("never")).destroyedAt > 0);
});

test("an agent of one's own without modes and options gives the SDK's errors", async (t) => {
  const runtime = Runtime.make(t);
  const command = runtime.script("plain-agent", `#!${process.execPath}
    require("node:readline").createInterface({ input: process.stdin }).on("line", (line) => {
      const { id, method } = JSON.parse(line);
      const result = { initialize: { protocolVersion: 1, agentCapabilities: {} }, "session/new": { sessionId: "only" } }[method];
      console.log(JSON.stringify({ jsonrpc: "2.0", id, ...(result ? { result } : { error: { code: -32601, message: "no " + method } }) }));
    });`);
  runtime.agents([{ id: "plain", name: "Plain", command, args: [], env: {} }]);
  await runtime.start();
  const sdk = await runtime.connect();
  const session = await sdk.createSession({ id: "plain", agent: "plain", cwd: runtime.work });
  // Without options of the session the SDK asks GET /v1/agents/plain?config=true for them.
  const none = (category) => failure(UnsupportedSessionCategoryError, { sessionId: "plain", category, availableCategories: [] });
  await assert.rejects(session.setModel("any"), none("model"));
  await assert.rejects(session.setThoughtLevel("any"), none("thought_level"));
  await assert.rejects(session.setMode("any"), none("mode")); // after the agent has said -32601
  assert.deepEqual(await session.getConfigOptions(), []);
  await assert.rejects(session.rawSend("session/prompt", { prompt: blocks("hello") }), failure(AcpRpcError, { code: -32601 }));
});

test("an agent's error and stop reasons reach the caller as they are", async (t) => {
  const runtime = await Runtime.open(t);
  const sdk = await runtime.connect();
  const session = await sdk.createSession({ agent: "mock", cwd: runtime.work });
  await assert.rejects(session.prompt(blocks("error")), failure(AcpRpcError, {
    code: -32603, message: "Internal agent error: the prompt asked for an error", data: { details: "the prompt asked for an error" },
  }));
  assert.equal((await session.prompt(blocks("limit"))).stopReason, "max_tokens");
  assert.equal((await session.prompt(blocks("refuse"))).stopReason, "refusal");
  await assert.rejects(session.rawSend("demo/none"), failure(AcpRpcError, { code: -32601 }));
  assert.equal(await session.rawSend("_demo/note", { a: 1 }, { notification: true }), undefined);
  assert.equal((await turn(session, "help")).response.stopReason, "end_turn");
});

test("two sessions on one connection share an agent and nothing else", async (t) => {
  const runtime = await Runtime.open(t);
  const sdk = await runtime.connect();
  const names = ["one", "two"];
  const sessions = await Promise.all(names.map((id) => sdk.createSession({ id, agent: "mock", cwd: runtime.work })));
  assert.equal((await runtime.instances()).length, 1);
  assert.equal(runtime.agentProcesses().length, 1);
  assert.notEqual(sessions[0].agentSessionId, sessions[1].agentSessionId);
  assert.equal(sessions[0].lastConnectionId, sessions[1].lastConnectionId);

  await sessions[0].setMode("plan");
  assert.equal((await sessions[1].getModes()).currentModeId, "ask");
  const answers = await Promise.all(sessions.map((session) => turn(session, `echo ${session.id}`)));
  for (const [index, session] of sessions.entries()) {
    assert.deepEqual(echoed(answers[index].text), { prompt: blocks(`echo ${session.id}`) });
    const { items } = await sdk.getEvents({ sessionId: session.id });
    const updates = items.filter(({ payload }) => payload.method === "session/update");
    assert.ok(updates.length > 2);
    for (const { payload } of updates) assert.equal(payload.params.sessionId, session.agentSessionId);
  }
  assert.deepEqual((await sdk.listSessions()).items.map(({ id }) => id).sort(), names);
});

test("destroySession cancels the turn that runs, and the connection lives on", async (t) => {
  const runtime = await Runtime.open(t);
  const sdk = await runtime.connect();
  const session = await sdk.createSession({ id: "gone", agent: "mock", cwd: runtime.work });
  const ticks = [];
  session.onEvent(({ payload }) => ticks.push(textOf([payload])));
  const prompt = session.prompt(blocks("slow"));
  await until("the stream", () => ticks.includes("tick 2\n"));
  await assert.rejects(session.rawSend("session/cancel"), /^Error: Manual session\/cancel calls are not allowed\./);

  const before = performance.now();
  const destroyed = await sdk.destroySession("gone");
  assert.equal((await prompt).stopReason, "cancelled");
  const took = performance.now() - before;
  assert.ok(took < 1000, `${took} ms`);
  assert.ok(destroyed.destroyedAt > 0);

  const next = await sdk.createSession({ agent: "mock", cwd: runtime.work });
  assert.equal((await turn(next, "echo")).response.stopReason, "end_turn");
  assert.equal((await runtime.instances()).length, 1);
});

test("dispose leaves no instance and no process", async (t) => {
  const runtime = await Runtime.open(t);
  const sdk = await runtime.connect();
  const session = await sdk.createSession({ agent: "mock", cwd: runtime.work });
  await turn(session, "echo");
  assert.equal(runtime.agentProcesses().length, 1);
  await sdk.dispose();
  // DELETE is answered when the process is gone.
  assert.deepEqual(runtime.agentProcesses(), []);
  assert.deepEqual(await runtime.instances(), []);
});

test("dispose ends an agent in mid-turn that ignores its end and has a child, within two seconds", async (t) => {
  const runtime = await Runtime.open(t);
  const quiet = t.mock.method(console, "error", () => {}); // the SDK tells of the POST that was cut short
  const sdk = await runtime.connect();
  const session = await sdk.createSession({ agent: "mock", cwd: runtime.work });
  let told = "";
  session.onEvent(({ payload }) => (told += textOf([payload])));
  session.prompt(blocks("stubborn")).catch(() => {});
  await until("the stubborn agent", () => /Its pid is \d+\./.test(told));
  assert.equal(runtime.agentProcesses().length, 2);
  const before = performance.now();
  await sdk.dispose();
  const took = performance.now() - before;
  assert.deepEqual(runtime.agentProcesses(), []);
  assert.deepEqual(await runtime.instances(), []);
  assert.ok(took < 2000, `${took} ms`);
  await until("the word of the SDK", () => quiet.mock.callCount() > 0);
});

test("two clients at once on one server do not see each other", async (t) => {
  const runtime = await Runtime.open(t);
  const clients = await Promise.all([runtime.connect(), runtime.connect()]);
  const sessions = await Promise.all(clients.map((sdk) => sdk.createSession({ id: "same", agent: "mock", cwd: runtime.work })));
  assert.equal((await runtime.instances()).length, 2);
  assert.equal(runtime.agentProcesses().length, 2);
  const words = ["echo alpha", "echo beta"];
  const answers = await Promise.all(sessions.map((session, index) => turn(session, words[index])));
  for (const [index, { text, messages }] of answers.entries()) {
    assert.deepEqual(echoed(text), { prompt: blocks(words[index]) });
    assert.ok(!JSON.stringify(messages).includes(words[1 - index]));
  }
  await clients[0].dispose();
  assert.equal((await runtime.instances()).length, 1);
  assert.equal((await turn(sessions[1], "echo")).response.stopReason, "end_turn");
});

test("a resource_link reaches the agent as it was, and the agent's own reaches the client", async (t) => {
  const runtime = await Runtime.open(t);
  const sdk = await runtime.connect();
  const file = path.join(runtime.work, "Ünder träe 漢.txt");
  fs.writeFileSync(file, "what the link leads to");
  const link = { type: "resource_link", name: path.basename(file), uri: pathToFileURL(file).href, mimeType: "text/plain", size: 22 };
  const session = await sdk.createSession({ agent: "mock", cwd: runtime.work, mode: "plan" });
  assert.deepEqual(echoed((await turn(session, "echo", link)).text), { prompt: blocks("echo", link) });
  const { text } = await turn(session, "look at this", link);
  assert.ok(text.includes(`With it came:\n\n- link ${link.name}, ${link.uri}\n`), text);
  assert.equal(fs.readFileSync(new URL(link.uri), "utf8"), "what the link leads to");

  const { messages } = await turn(session, "media");
  const sent = messages.map((message) => message.params?.update?.content).filter((content) => content?.type === "resource_link");
  assert.equal(sent.length, 1);
  assert.equal(sent[0].name, "deskhand-demo.md");
  assert.equal(sent[0].uri, pathToFileURL(path.join(runtime.work, "deskhand-demo.md")).href);
});
