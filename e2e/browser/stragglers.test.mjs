// What a stopped turn has left running, and the button that ends it.
import assert from "node:assert/strict";
import fs from "node:fs";
import path from "node:path";
import { test } from "node:test";
import { App, Looks } from "./app.mjs";
import { Desk, until } from "./desk.mjs";

/** An agent that runs a command in a session of its own for each prompt, and leaves it running when it is stopped. */
const leaver = String.raw`#!/usr/bin/env node
const { spawn } = require("node:child_process");
const say = (message) => process.stdout.write(JSON.stringify({ jsonrpc: "2.0", ...message }) + "\n");
const command = "npm run dev >/dev/null 2>&1 || exec sleep 300";
let prompt;
require("node:readline").createInterface({ input: process.stdin }).on("line", (line) => {
  const { id, method } = JSON.parse(line);
  if (method === "initialize") say({ id, result: { protocolVersion: 1, agentCapabilities: { loadSession: true } } });
  if (method === "session/new") say({ id, result: { sessionId: "leaver" } });
  if (method === "session/prompt") {
    prompt = id;
    const update = {
      sessionUpdate: "tool_call", toolCallId: "call-" + id, title: "Start the development server", kind: "execute", status: "in_progress",
      rawInput: { command },
    };
    say({ method: "session/update", params: { sessionId: "leaver", update } });
    const child = spawn("/bin/sh", ["-c", command], { detached: true, stdio: "ignore" });
    require("node:fs").writeFileSync(process.argv[1] + ".pid", String(child.pid));
  }
  if (method === "session/cancel") say({ id: prompt, result: { stopReason: "cancelled" } });
}).on("close", () => process.exit());
`;

test("a command that runs on after a stop is told, and ended by its button", async (t) => {
  const looks = new Looks();
  const desk = Desk.make(t);
  desk.agents([{ id: "leaver", name: "Leaver", command: desk.script("leaver", leaver) }]);
  await desk.start();
  const pid = () => fs.readFileSync(path.join(desk.dir, "leaver.pid"), "utf8");
  const runs = () => fs.existsSync(`/proc/${pid()}`);
  const app = await App.open(desk, { agent: "Leaver" });
  await app.send("Start the server, please.");
  await until("the command", () => fs.existsSync(path.join(desk.dir, "leaver.pid")) && runs());
  await app.button("Stop").click();
  await app.page.getByText("Still running after the stop:").waitFor();
  await app.page.getByText(`process ${pid()}`).waitFor();
  await looks.at(app.page, "straggler-running");
  await app.page.getByRole("button", { name: /^End command/ }).click();
  await app.page.getByText("You ended:").waitFor();
  assert.ok(!runs());
  await looks.at(app.page, "straggler-ended");
  await app.page.reload();
  await app.page.getByText("You ended:").waitFor();
  assert.equal(await app.page.getByRole("button", { name: /^End command/ }).count(), 0);
  looks.done();
});
