// Runs of work in a transcript: they fold, what matters in them stays visible, and what they name opens. In Chromium.
import assert from "node:assert/strict";
import fs from "node:fs";
import path from "node:path";
import { test } from "node:test";
import { App } from "./app.mjs";
import { Desk, shoot, until } from "./desk.mjs";

/** An agent that works until a file "go" is there, and then answers. */
const agent = `#!/usr/bin/env node
const fs = require("fs");
let cwd;
require("readline").createInterface({ input: process.stdin }).on("line", (line) => {
  const { id, method, params } = JSON.parse(line);
  const send = (message) => console.log(JSON.stringify({ jsonrpc: "2.0", ...message }));
  const update = (update) => send({ method: "session/update", params: { sessionId: "one", update } });
  const say = (text) => update({ sessionUpdate: "agent_message_chunk", content: { type: "text", text } });
  if (method === "initialize") send({ id, result: { protocolVersion: 1 } });
  if (method === "session/new") { cwd = params.cwd; send({ id, result: { sessionId: "one" } }); }
  if (method !== "session/prompt") return;
  let n = 0;
  const call = (title, kind, more = {}) =>
    update({ sessionUpdate: "tool_call", toolCallId: id + "-" + n++, title, kind, status: "completed", ...more });
  const at = (name, line) => ({ locations: [{ path: cwd + "/" + name, ...(line ? { line } : {}) }] });
  const edit = (name, newText) => ({ content: [{ type: "diff", path: cwd + "/" + name, oldText: "func old() {}\\n", newText }], ...at(name) });
  const text = (text) => ({ content: [{ type: "content", content: { type: "text", text } }] });
  const run = (command, output) => ({ rawInput: { command }, ...text(output) });
  say("I look at the lamp first.");
  update({ sessionUpdate: "agent_thought_chunk", content: { type: "text", text: "The lamp turns too fast, so its period must be wrong." } });
  call("Read", "read", at("src/main.go", 203));
  call("Read", "read", at("docs/README.md"));
  call("Read", "read", at("src/lamp.go"));
  call("Search", "search", { rawInput: { pattern: "period" }, ...text("src/main.go:203: func theFunction() {}") });
  call("Search", "search", { rawInput: { pattern: "kelvin" } });
  call("Edit src/lamp.go", "edit", edit("src/lamp.go", "func new() {}\\n"));
  call("Edit src/gone.go", "edit", { ...at("src/gone.go"), status: "failed", ...text("The file is not there.") });
  call("Edit src/main.go", "edit", edit("src/main.go", "func new() {}\\n"));
  call("Build it", "execute", { ...run("go build ./...", "src/main.go:203: undefined: lamp\\nsrc/none.go:4: no\\n"), rawOutput: { exitCode: 2 } });
  const last = id + "-" + n;
  call("go test ./...", "execute", { rawInput: { command: "go test ./..." }, status: "in_progress" });
  const timer = setInterval(() => {
    if (!fs.existsSync(cwd + "/go")) return;
    clearInterval(timer);
    update({ sessionUpdate: "tool_call_update", toolCallId: last, status: "completed", ...text("ok  lighthouse  0.004s") });
    say("The lamp is slow in a storm now, by \`src/main.go:203\`.");
    send({ id, result: { stopReason: "end_turn" } });
  }, 20);
});
`;

async function working(t) {
  const desk = await Desk.open(t);
  desk.agents([{ id: "worker", name: "Worker", command: desk.script("worker.js", agent) }]);
  const put = (name, text) => {
    fs.mkdirSync(path.dirname(path.join(desk.work, name)), { recursive: true });
    fs.writeFileSync(path.join(desk.work, name), text);
  };
  put("src/main.go", `package main\n\n${"// words\n".repeat(200)}func theFunction() {}\n`);
  put("src/lamp.go", "package main\n");
  const app = await App.open(desk, { agent: "Worker" });
  await app.send("Slow it down");
  const head = app.log.getByRole("button", { name: /^Read 3 files, searched 2, edited 3, ran 2 commands/ });
  await head.waitFor();
  return { desk, app, head, rows: app.log.locator("[data-row=work] .within .toggle"), done: () => put("go", "") };
}

async function picture(app, name) {
  for (const colorScheme of ["light", "dark"]) {
    await app.page.emulateMedia({ colorScheme });
    await shoot(app.page, `${name}-${colorScheme}`);
  }
}

const named = (rows) => rows.evaluateAll((all) =>
  all.map((row) => document.getElementById(row.getAttribute("aria-labelledby")).innerText.replace(/\s+/g, " ").trim()));

test("a run of work shows its newest calls, and folds into one row when the answer goes on", async (t) => {
  const { desk, app, head, rows, done } = await working(t);
  assert.equal(await head.getAttribute("aria-expanded"), "true");
  assert.deepEqual(await named(rows), ["Edit src/gone.go Failed", "Edit src/main.go +1 −1", "Run go build ./...", "Run go test ./... running"]);
  await app.button("… 7 earlier steps").waitFor();
  await picture(app, "work-running");

  done();
  await app.footers.getByText("Done", { exact: true }).waitFor();
  await until("the run folded", async () => (await head.getAttribute("aria-expanded")) === "false");
  assert.deepEqual(await named(rows), ["Edit src/gone.go Failed"], "what failed stays visible");
  await app.log.getByText("1 failed").waitFor();
  await picture(app, "work-folded");

  await head.click();
  assert.equal((await named(rows)).length, 11);
  await picture(app, "work-open");
  await head.click();
  assert.deepEqual(await named(rows), [], "the person's choice wins");
  assert.deepEqual(desk.complaints, []);
});

test("somebody who has opened a call of a run that goes on keeps it", async (t) => {
  const { app, rows, done } = await working(t);
  await app.log.getByRole("button", { name: /^Run go build/ }).click();
  done();
  await app.footers.getByText("Done", { exact: true }).waitFor();
  assert.equal(await app.log.getByText("undefined: lamp").count(), 1);
  assert.equal((await named(rows)).length, 4);
});

test("a match within a folded run opens it", async (t) => {
  const { app, done } = await working(t);
  done();
  await app.footers.getByText("Done", { exact: true }).waitFor();
  await app.page.keyboard.press("Control+f");
  await app.page.getByRole("search", { name: "Find in this conversation" }).getByRole("textbox").fill("kelvin");
  await app.log.getByRole("button", { name: /kelvin/ }).waitFor();
});

test("the file of a call, and the files that an output names, open at their lines", async (t) => {
  const { desk, app, head, done } = await working(t);
  done();
  await app.footers.getByText("Done", { exact: true }).waitFor();
  await head.click();
  const panel = app.page.getByRole("complementary", { name: "Side panel" });
  const opens = async (what) => {
    await what.click();
    await panel.getByText("theFunction").first().waitFor();
    await panel.getByRole("button", { name: "Back to the files" }).click();
  };
  await opens(app.log.getByRole("button", { name: "src/main.go:203", exact: true }));
  await app.log.getByRole("button", { name: /^Run go build/ }).click();
  await opens(app.log.getByRole("link", { name: "src/main.go:203", exact: true }).first());
  assert.equal(await app.log.getByRole("link", { name: /none\.go/ }).count(), 0, "a file that is not there is no link");
  // A browser has no editor: the path is there to be pasted.
  await app.page.context().grantPermissions(["clipboard-read", "clipboard-write"]);
  await app.log.getByRole("link", { name: "src/main.go:203", exact: true }).first().click({ modifiers: ["ControlOrMeta"] });
  await app.page.getByText("A browser cannot open files. The path is copied:").waitFor();
  assert.equal(await app.page.evaluate(() => navigator.clipboard.readText()), path.join(desk.work, "src/main.go"));
  assert.deepEqual(desk.complaints, []);
});

test("the row names a call, and its body does not say it again", async (t) => {
  const { app, head, done } = await working(t);
  done();
  await app.footers.getByText("Done", { exact: true }).waitFor();
  await head.click();
  await app.log.getByRole("button", { name: /^Run go build/ }).click();
  const row = app.log.locator("[data-row=work]");
  assert.equal(await row.getByText("go build ./...").count(), 1);
  await row.getByText("Build it").waitFor(); // says more than the row
  await row.getByText("Details", { exact: true }).first().click();
  await row.getByText("Input", { exact: true }).waitFor();
  await row.getByText('"exitCode": 2').waitFor();
});
