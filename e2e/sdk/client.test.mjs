// acp-http-client by itself: ACP with an agent behind one server_id, without the SDK's sessions.
import assert from "node:assert/strict";
import fs from "node:fs";
import path from "node:path";
import { test } from "node:test";
import { AcpRpcError, PROTOCOL_VERSION } from "acp-http-client";
import { blocks, failure, kindOf, Runtime, Tap, textOf, until } from "./runtime.mjs";

/** A client with a session, and every message in both directions: [direction, message]. */
async function opened(runtime, serverId, { initialize = {}, ...options } = {}) {
  const traffic = [];
  const client = runtime.acp(serverId, { ...options, onEnvelope: (message, direction) => traffic.push([direction, message]) });
  await client.initialize(initialize);
  const { sessionId } = await client.newSession({ cwd: runtime.work, mcpServers: [] });
  return { client, sessionId, traffic, prompt: (...prompt) => client.prompt({ sessionId, prompt: blocks(...prompt) }) };
}

test("initialize, a session and a prompt", async (t) => {
  const runtime = await Runtime.open(t);
  const tap = new Tap();
  const updates = [];
  const client = runtime.acp("by-hand_1.0~x", { fetch: tap.fetch, client: { sessionUpdate: (notification) => updates.push(notification) } });
  const { agentInfo, ...about } = await client.initialize({ clientInfo: { name: "test", version: "1" } });
  assert.equal(agentInfo.name, "deskhand-demo");
  assert.deepEqual(about, {
    protocolVersion: PROTOCOL_VERSION, authMethods: [], _meta: { steering: { supported: true } },
    agentCapabilities: {
      loadSession: true, promptCapabilities: { image: true, audio: true, embeddedContext: true }, mcpCapabilities: { http: true, sse: true },
      sessionCapabilities: about.agentCapabilities.sessionCapabilities,
    },
  });
  const { sessionId, modes } = await client.newSession({ cwd: runtime.work, mcpServers: [] });
  assert.equal(modes.currentModeId, "ask");
  assert.deepEqual(await client.setSessionMode({ sessionId, modeId: "code" }), {});
  const set = await client.setSessionConfigOption({ sessionId, configId: "model", value: "demo-small" });
  assert.equal(set.configOptions.find(({ id }) => id === "model").currentValue, "demo-small");
  assert.equal((await client.prompt({ sessionId, prompt: blocks("diff") })).stopReason, "end_turn");
  await until("the last update", () => updates.some(({ update }) => update.sessionUpdate === "usage_update"));
  for (const update of updates) assert.equal(update.sessionId, sessionId);
  assert.equal(textOf(updates.map((params) => ({ params }))), "This is how an edit looks. It is an example: no file was touched.");

  const at = "/v1/acp/by-hand_1.0~x";
  assert.deepEqual(tap.requests, [`GET ${at}`, `POST ${at}?agent=mock`, ...Array(4).fill(`POST ${at}`)]);
  assert.deepEqual((await runtime.instances()).map((server) => server.serverId), ["by-hand_1.0~x"]);
});

test("a permission is asked of the client, once, and its answer reaches the agent", async (t) => {
  const runtime = await Runtime.open(t);
  const requests = [];
  const { prompt, traffic } = await opened(runtime, "asks", {
    client: {
      requestPermission: async (request) => {
        requests.push(request);
        return { outcome: { outcome: "selected", optionId: request.options[0].optionId } };
      },
    },
  });
  await prompt("permission");
  assert.deepEqual(requests.map(({ options }) => options[0].kind), ["allow_once"]);
  assert.match(fs.readFileSync(path.join(runtime.work, "deskhand-demo.md"), "utf8"), /Edits so far: 1\n/);
  // The agent counts its requests from 0 as the client does its own; both are answered.
  const ids = (direction, has) => traffic.filter(([d, message]) => d === direction && has in message && "id" in message).map(([, { id }]) => id);
  assert.deepEqual(ids("inbound", "method"), [0]);
  assert.deepEqual(ids("outbound", "result"), [0]);
  assert.deepEqual(ids("inbound", "result"), [0, 1, 2]);
});

test("without a handler a permission is dismissed, and an unknown request is an error", async (t) => {
  const runtime = await Runtime.open(t);
  const quiet = t.mock.method(console, "error", () => {}); // acp-http-client tells of requests that it cannot answer
  const { prompt, traffic } = await opened(runtime, "dumb");
  await prompt("permission");
  await prompt("/unknown-request");
  await until("the text", () => textOf(traffic.map(([, message]) => message)).includes("The client answered with error -32601"));
  assert.ok(textOf(traffic.map(([, message]) => message)).startsWith("**Nothing was changed.** The request was dismissed."));
  assert.equal(quiet.mock.callCount(), 1);
});

test("extension methods go both ways, with the underscore and all", async (t) => {
  const runtime = await Runtime.open(t);
  const asked = [];
  const { client, sessionId, prompt, traffic } = await opened(runtime, "extends", {
    client: {
      extMethod: async (method, params) => {
        asked.push([method, params]);
        return method === "_demo/vendor_request" ? { "of the client": true } : { status: "answered", answers: [[params.options[1][0]]] };
      },
    },
  });
  await prompt("/vendor-request");
  await prompt("/question");
  assert.deepEqual(asked.map(([method]) => method), ["_demo/vendor_request", "_sandboxagent/session/request_question"]);
  assert.deepEqual(asked[0][1], { sessionId, note: "No client knows this request.", values: [1, 2, 3] });
  assert.equal(asked[1][1].prompt, "Which option?");
  const said = () => textOf(traffic.map(([, message]) => message));
  await until("both answers", () => said().includes("You answered: option-b"));
  assert.ok(said().includes('The client answered with a result: `{"of the client":true}`'), said());

  assert.equal(await client.extNotification("_sandboxagent/session/detached", { sessionId }), undefined);
  await assert.rejects(client.extMethod("_sandboxagent/session/list", {}), failure(AcpRpcError, {
    code: -32601, message: "Method not supported by agent: method not found: _sandboxagent/session/list", data: undefined,
  }));
});

test("lines of the agent that are no JSON come as notifications, and so do a vendor's own", async (t) => {
  const runtime = await Runtime.open(t);
  const quiet = t.mock.method(console, "error", () => {}); // acp-http-client tells of updates that it cannot read
  const notes = [];
  const { prompt } = await opened(runtime, "junk", { client: { extNotification: async (method, params) => notes.push([method, params]) } });
  assert.equal((await prompt("junk")).stopReason, "end_turn");
  await until("the vendor's notification", () => notes.some(([method]) => method === "_demo/unknown_notification"));
  assert.deepEqual(notes.map(([method, { raw }]) => [method, raw]), [
    ["_adapter/invalid_stdout", "Warning: this line is not JSON"],
    ["_adapter/invalid_stdout", "\x1b[33mnor is this one, in colour\x1b[0m"],
    ["_adapter/invalid_stdout", '{"jsonrpc":"2.0","method":"session/update","params":{'],
    ["_demo/unknown_notification", undefined],
  ]);
  for (const [, { error }] of notes.slice(0, 3)) assert.equal(typeof error, "string");
  assert.ok(quiet.mock.callCount() > 0);
});

test("cancel ends the turn as cancelled, with nothing after it but the answer", async (t) => {
  const runtime = await Runtime.open(t);
  const tap = new Tap();
  const { client, sessionId, prompt } = await opened(runtime, "cancels", { fetch: tap.fetch });
  const slow = prompt("slow");
  const seen = () => tap.events.map(({ message }) => message);
  await until("the stream", () => textOf(seen()).includes("tick 2\n"));
  const before = performance.now();
  await client.cancel({ sessionId });
  const { stopReason } = await slow;
  const took = performance.now() - before;
  assert.equal(stopReason, "cancelled");
  assert.ok(took < 1000, `${took} ms`);
  await until("the answer on the stream", () => seen().some((message) => message.result?.stopReason === "cancelled"));
  assert.equal(kindOf(seen().at(-1)), "result");
  assert.equal((await prompt("help")).stopReason, "end_turn");
});

test("a later client loads the session that an earlier one left", async (t) => {
  const runtime = await Runtime.open(t);
  const first = await opened(runtime, "first");
  await first.prompt("diff");
  await first.client.disconnect();

  const updates = [];
  const client = runtime.acp("second", { client: { sessionUpdate: ({ update }) => updates.push(update) } });
  await client.initialize();
  const { sessions } = await client.listSessions({});
  assert.deepEqual(sessions.map(({ sessionId, cwd, title }) => ({ sessionId, cwd, title })), [
    { sessionId: first.sessionId, cwd: runtime.work, title: "diff" },
  ]);
  await client.loadSession({ sessionId: first.sessionId, cwd: runtime.work, mcpServers: [] });
  await until("the history", () => updates.some(({ sessionUpdate }) => sessionUpdate === "usage_update"));
  assert.equal(updates.find(({ sessionUpdate }) => sessionUpdate === "user_message_chunk").content.text, "diff");
  assert.equal(textOf(updates.map((update) => ({ params: { update } }))), "This is how an edit looks. It is an example: no file was touched.");
});

test("disconnect ends the instance, its process and the client", async (t) => {
  const runtime = await Runtime.open(t);
  const { client } = await opened(runtime, "ends");
  assert.equal(runtime.agentProcesses().length, 1);
  assert.equal(client.signal.aborted, false);
  await client.disconnect();
  await client.closed;
  assert.equal(client.signal.aborted, true);
  assert.deepEqual(runtime.agentProcesses(), []);
  assert.deepEqual(await runtime.instances(), []);
  const gone = await runtime.v1("POST", "/v1/acp/ends", {
    headers: { "Content-Type": "application/json" }, body: '{"jsonrpc":"2.0","id":9,"method":"x"}',
  });
  assert.equal(gone.status, 400);
  await client.disconnect(); // again is nothing

  const silent = runtime.acp("never-used");
  await silent.disconnect();
  await silent.closed;
});

test("a server_id can be used again after disconnect, and begins anew", async (t) => {
  const runtime = await Runtime.open(t);
  // Without the DELETE of disconnect the next client would be given the answers of the one before: both count from 0.
  for (let time = 0; time < 3; time++) {
    const tap = new Tap();
    const { client, prompt } = await opened(runtime, "again", { fetch: tap.fetch });
    assert.equal((await prompt("echo")).stopReason, "end_turn");
    await until("the answer on the stream", () => tap.events.some(({ message }) => message.result?.stopReason));
    assert.deepEqual(tap.events.map(({ id }) => id), tap.events.map((_, index) => index + 1));
    await client.disconnect();
  }
});
