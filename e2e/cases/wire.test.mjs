// Messages of other people's agents on the wire: each test is a public report, reduced.
import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { createInterface } from "node:readline";
import { test } from "node:test";
import { Place, program } from "../place.mjs";
import { agent, noted } from "./scripted.mjs";

const reason = "quota for project lighthouse is used up";

/** Runs `deskhand prompt` against the scripted agent. */
const prompt = (place, text, ...flags) => place.command(["prompt", "--agent", "scripted", "--dir", place.work, ...flags, text]);
const shown = async (place) => (await place.command(["sessions", "show", "last"])).out;

test("a message counts behind a window title or a reset of colours", async (t) => {
  const place = Place.make(t);
  place.agents([agent(place, (agent) => ({
    initialize({ id }) {
      agent.raw(`\x1b]0;tool: ready\x07${JSON.stringify({ jsonrpc: "2.0", id, result: { protocolVersion: 1 } })}\n`);
    },
    "session/prompt"(message) {
      const update = { sessionUpdate: "agent_message_chunk", content: { type: "text", text: "hello there" } };
      agent.raw(`\x1b[0m${JSON.stringify({ jsonrpc: "2.0", method: "session/update", params: { sessionId: "one", update } })}\n`);
      agent.answer(message, { stopReason: "end_turn" });
    },
  }))]);
  const { code, out, err } = await prompt(place, "go");
  assert.equal(code, 0, err);
  assert.match(out, /hello there/);
});

test("a terminal runs a whole shell line that comes as its command", async (t) => {
  const place = Place.make(t);
  place.agents([agent(place, (agent) => ({
    async "session/prompt"(message) {
      for (const command of ["echo one && echo two | cat", "git -C . --version", "ls -la"]) {
        const { result, error } = await agent.ask("terminal/create", { command });
        if (error) {
          agent.note("ran", { command, error: error.message });
          continue;
        }
        const { result: exit } = await agent.ask("terminal/wait_for_exit", result);
        const { result: said } = await agent.ask("terminal/output", result);
        agent.note("ran", { command, exit: exit.exitCode, output: said.output });
        await agent.ask("terminal/release", result);
      }
      agent.answer(message, { stopReason: "end_turn" });
    },
  }))]);
  const { code, err } = await prompt(place, "go");
  assert.equal(code, 0, err);
  const [echo, git, list] = noted(place, "ran");
  assert.deepEqual(echo, { command: "echo one && echo two | cat", exit: 0, output: "one\ntwo\n" });
  assert.match(git.output ?? git.error, /^git version/);
  assert.match(list.output ?? list.error, /^total /);
});

test("tool calls of one turn that share an id are entries of their own", async (t) => {
  const place = Place.make(t);
  place.agents([agent(place, (agent) => ({
    "session/prompt"(message) {
      for (const text of ["FIRST", "SECOND", "THIRD"]) {
        agent.update("tool_call", { toolCallId: "call_0", title: `Step ${text}`, kind: "execute", status: "in_progress", rawInput: { command: text } });
        agent.update("tool_call_update", { toolCallId: "call_0", status: "completed", content: [{ type: "content", content: { type: "text", text: `${text} RESULT` } }] });
        agent.say(`Behind ${text}. `);
      }
      agent.answer(message, { stopReason: "end_turn" });
    },
  }))]);
  const { code, err } = await prompt(place, "go");
  assert.equal(code, 0, err);
  const text = await shown(place);
  for (const word of ["FIRST RESULT", "SECOND RESULT", "THIRD RESULT"]) assert.ok(text.includes(word), `${word} is not in ${text}`);
});

for (const [form, data] of Object.entries({ details: { details: reason }, text: reason, message: { message: reason } })) {
  test(`the reason of an error is told that stands in its data as ${form}`, async (t) => {
    const place = Place.make(t);
    place.agents([
      agent(place, (agent, data) => ({ "session/prompt": (message) => agent.fail(message, { code: -32603, message: "Internal error", data }) }), { data }),
      agent(place, (agent, data) => ({ "session/new": (message) => agent.fail(message, { code: -32603, message: "Internal error", data }) }), { data, id: "unready" }),
    ]);
    const turn = await prompt(place, "go");
    assert.equal(turn.code, 1);
    assert.ok((turn.err + turn.out).includes(reason), turn.err);
    assert.ok((await shown(place)).includes(reason), "the transcript does not have the reason");
    const start = await place.command(["prompt", "--agent", "unready", "--dir", place.work, "go"]);
    assert.equal(start.code, 1);
    assert.ok((start.err + start.out).includes(reason), start.err);
  });
}

test("an editor gets the reason of an error with its data", async (t) => {
  const place = Place.make(t);
  place.agents([agent(place, (agent, details) => ({
    "session/prompt": (message) => agent.fail(message, { code: -32603, message: "Internal error", data: { details } }),
  }), { data: reason })]);
  const editor = spawn(program(), ["acp", "--agent", "scripted"], { env: place.env, cwd: place.work, stdio: ["pipe", "pipe", "ignore"] });
  const ended = new Promise((done) => editor.on("exit", done));
  const lines = createInterface({ input: editor.stdout })[Symbol.asyncIterator]();
  let last = 0;
  const call = async (method, params) => {
    const id = ++last;
    editor.stdin.write(`${JSON.stringify({ jsonrpc: "2.0", id, method, params })}\n`);
    for (;;) {
      const { value, done } = await lines.next();
      assert.ok(!done, `the program ended before it answered ${method}`);
      const message = JSON.parse(value);
      if (message.id === id && !message.method) return message;
    }
  };
  await call("initialize", { protocolVersion: 1, clientCapabilities: {} });
  const { result } = await call("session/new", { cwd: place.work, mcpServers: [] });
  const { error } = await call("session/prompt", { sessionId: result.sessionId, prompt: [{ type: "text", text: "go" }] });
  editor.stdin.end();
  await ended;
  assert.ok(JSON.stringify(error).includes(reason), JSON.stringify(error));
});

test("behind a proxy an agent reaches Deskhand's own tools directly", async (t) => {
  const proxy = "http://proxy.example.com:3128";
  const place = Place.make(t, { env: { HTTP_PROXY: proxy, HTTPS_PROXY: proxy, http_proxy: proxy } });
  place.agents([agent(place, (agent) => ({
    initialize: (message) => agent.answer(message, { protocolVersion: 1, agentCapabilities: { mcpCapabilities: { http: true } }, authMethods: [] }),
    "session/new"(message) {
      agent.note("start", { servers: message.params.mcpServers, NO_PROXY: process.env.NO_PROXY, no_proxy: process.env.no_proxy });
      agent.answer(message, { sessionId: agent.session });
    },
  }))]);
  const { code, err } = await prompt(place, "go");
  assert.equal(code, 0, err);
  const [start] = noted(place, "start");
  assert.ok(start.servers.some(({ url }) => url?.startsWith("http://127.0.0.1:")), `the agent was given no tools: ${JSON.stringify(start)}`);
  for (const name of ["NO_PROXY", "no_proxy"]) assert.ok(start[name]?.split(",").includes("127.0.0.1"), `${name} is ${start[name]}`);
});
