// What an agent has its own subagents do: a row for each, with its calls in it.
import assert from "node:assert/strict";
import fs from "node:fs";
import path from "node:path";
import { test } from "node:test";
import { App, Looks } from "./app.mjs";
import { Desk, until } from "./desk.mjs";

/** An agent with two subagents at the same time, which waits for a file before they end. */
const agent = `#!/usr/bin/env node
const fs = require("fs");
const send = (message) => console.log(JSON.stringify({ jsonrpc: "2.0", ...message }));
const say = (update) => send({ method: "session/update", params: { sessionId: "s1", update } });
const call = (toolCallId, title, kind, parent) => say({ sessionUpdate: "tool_call", toolCallId, title, kind, status: "in_progress", ...(parent ? { _meta: { claudeCode: { parentToolUseId: parent } } } : {}) });
const end = (toolCallId, status = "completed") => say({ sessionUpdate: "tool_call_update", toolCallId, status });
require("readline").createInterface({ input: process.stdin }).on("line", (line) => {
  const { id, method } = JSON.parse(line);
  if (method === "initialize") send({ id, result: { protocolVersion: 1, agentCapabilities: {} } });
  if (method === "session/new") send({ id, result: { sessionId: "s1" } });
  if (method !== "session/prompt") return;
  call("t1", "Review the lamp", "think");
  call("t2", "Look for storms", "think");
  for (const [n, parent] of ["t1", "t2", "t1", "t1", "t2", "t1"].entries()) {
    call("c" + n, ["Read src/lamp.go", "grep storm", "go test ./...", "Read src/motor.go", "Read docs/storm.md", "go vet ./..."][n], ["read", "search", "execute", "read", "read", "execute"][n], parent);
    end("c" + n, n === 2 ? "failed" : "completed");
  }
  const timer = setInterval(() => {
    if (!fs.existsSync("go")) return;
    clearInterval(timer);
    end("t1");
    end("t2");
    say({ sessionUpdate: "agent_message_chunk", content: { type: "text", text: "Both have looked." } });
    send({ id, result: { stopReason: "end_turn" } });
  }, 50);
});
`;

test("each subagent has a row of its own, with its calls in it", async (t) => {
  const desk = await Desk.open(t);
  desk.agents([{ id: "chief", name: "Chief", command: desk.script("chief.js", agent) }]);
  const app = await App.open(desk, { agent: "Chief" });
  const looks = new Looks();
  await app.send("Look at it");
  const row = (name) => app.log.getByRole("button", { name });
  await row(/^Review the lamp Read 2 files, ran 2 commands running/).waitFor();
  await row(/^Look for storms Read 1 file, searched 1 running/).waitFor();
  // The newest three of each are visible while it is at work.
  await app.log.getByText("go vet ./...").waitFor();
  assert.equal(await app.log.getByText("src/lamp.go").count(), 0);
  await looks.at(app.page, "subagents-running");

  fs.writeFileSync(path.join(desk.work, "go"), "");
  await app.log.getByText("Both have looked.").waitFor();
  await app.footers.last().getByText("Done", { exact: true }).waitFor();
  const run = row(/^Read 3 files, searched 1, ran 2 commands, ran 2 subagents/);
  await until("the run is folded", async () => (await app.log.getByText("Look for storms").count()) === 0);
  await app.log.getByText("go test ./...").waitFor(); // what failed stays in sight
  await run.click();
  await row(/^Review the lamp Read 2 files, ran 2 commands 1 failed/).click();
  await app.log.getByText("src/lamp.go").waitFor();
  await looks.at(app.page, "subagents");
  looks.done();
  assert.deepEqual(desk.complaints, []);
});
