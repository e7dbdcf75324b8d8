// How many clicks the most usual jobs take, beside typing. Git's jobs, commit and pull request, are not in Deskhand.
import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import fs from "node:fs";
import path from "node:path";
import { test } from "node:test";
import { App } from "./app.mjs";
import { Desk, until } from "./desk.mjs";

const git = (cwd, ...args) => execFileSync("git", ["-C", cwd, ...args]);

/** An agent that asks before it writes a file, names the file, and fails when it is told to. */
const writer = `#!/usr/bin/env node
const fs = require("fs");
let turn, session, failed = 0;
require("readline").createInterface({ input: process.stdin }).on("line", (line) => {
  const { id, method, params, result } = JSON.parse(line);
  const send = (message) => console.log(JSON.stringify({ jsonrpc: "2.0", ...message }));
  const update = (update) => send({ method: "session/update", params: { sessionId: session, update } });
  const say = (text) => update({ sessionUpdate: "agent_message_chunk", content: { type: "text", text } });
  if (method === "initialize") send({ id, result: { protocolVersion: 1 } });
  if (method === "session/new") send({ id, result: { sessionId: (session = "s" + process.pid), models: { currentModelId: "large",
    availableModels: [{ modelId: "large", name: "Large" }, { modelId: "small", name: "Small" }] } } });
  if (method === "session/set_model") send({ id, result: {} });
  if (id === "ask") {
    fs.writeFileSync("note.txt", "written\\n");
    say("I wrote \`note.txt\`.");
    send({ id: turn, result: { stopReason: "end_turn" } });
  }
  if (method !== "session/prompt") return;
  turn = id;
  if (params.prompt[0].text === "fail" && failed++ === 0) send({ id, error: { code: -32603, message: "Internal error" } });
  else if (params.prompt[0].text !== "write") { say("said"); send({ id, result: { stopReason: "end_turn" } }); }
  else send({ id: "ask", method: "session/request_permission", params: { sessionId: session, toolCall: { toolCallId: "t1", title: "Write note.txt", kind: "edit", status: "pending" },
    options: [{ optionId: "yes", name: "Allow once", kind: "allow_once" }, { optionId: "no", name: "Reject", kind: "reject_once" }] } });
});
`;

test("the most usual jobs take few clicks", async (t) => {
  const desk = await Desk.open(t);
  desk.agents([{ id: "writer", name: "Writer", command: desk.script("writer.js", writer) }]);
  git(desk.work, "init", "-q");
  fs.writeFileSync(path.join(desk.work, "readme.md"), "# It\n");
  git(desk.work, "add", ".");
  git(desk.work, "-c", "user.name=A", "-c", "user.email=a@example.org", "commit", "-qm", "Begin");
  const app = await App.open(desk, { agent: "Writer", viewport: { width: 1440, height: 900 } });
  const { page } = app;
  await page.evaluate(() => {
    window.clicks = 0;
    window.addEventListener("click", (event) => event.detail > 0 && window.clicks++, true);
  });
  /** Does a job, which takes so many clicks. */
  const job = async (name, clicks, work) => {
    await page.evaluate(() => (window.clicks = 0));
    await work();
    assert.equal(await page.evaluate(() => window.clicks), clicks, name);
  };
  const at = app.footers.last();

  await app.send("write");
  await app.request.waitFor();
  await app.unguarded();
  await job("approve", 1, async () => {
    await app.button("Allow once", app.request).click();
    await at.getByText("Done", { exact: true }).waitFor();
  });
  const panel = page.getByRole("complementary", { name: "Side panel" });
  await job("open a file that an answer names", 1, async () => {
    await app.log.getByText("note.txt", { exact: true }).last().click();
    await panel.getByText("written").first().waitFor();
  });
  await job("see the turn's changes", 1, async () => {
    await at.getByRole("button", { name: /^1 file/ }).click();
    await panel.getByRole("treeitem", { name: /^note\.txt/ }).waitFor();
  });
  await job("revert the turn", 2, async () => {
    await app.button("Revert turn", at).click();
    await app.button("Undo 1 file").click();
    await page.getByRole("dialog").waitFor({ state: "detached" });
    assert.ok(!fs.existsSync(path.join(desk.work, "note.txt")), "the file that the turn created");
  });
  await job("rename", 1, async () => {
    await app.button("write", page.getByRole("heading", { level: 1 })).click();
    await page.keyboard.type("A note");
    await page.keyboard.press("Enter");
    await page.getByRole("heading", { level: 1, name: "A note" }).waitFor();
  });
  await job("change the model", 2, async () => {
    await page.getByRole("button", { name: /^Model: / }).click();
    await page.getByRole("option", { name: /^Small/ }).click();
    await page.getByRole("button", { name: /^Model: Small/ }).waitFor();
  });
  await app.turn("fail", "The agent failed").catch(() => undefined);
  await app.button("Retry", at).waitFor();
  await job("retry", 1, async () => {
    await app.button("Retry", at).click();
    await app.log.getByText("said").waitFor();
  });
  await job("a new conversation in the same project", 0, async () => {
    await page.keyboard.press("Alt+n");
    await page.getByRole("heading", { name: "New conversation" }).waitFor();
    await until("the focus", () => app.composer.evaluate((field) => field === document.activeElement));
    await page.keyboard.type("hello there");
    await page.keyboard.press("Enter");
    await app.log.getByText("said").waitFor();
  });
  assert.equal((await desk.session()).cwd, desk.work);
  await job("a new conversation in a worktree", 1, async () => {
    await page.keyboard.press("Alt+n");
    await page.getByRole("heading", { name: "New conversation" }).waitFor();
    await app.button("New worktree").click();
    await app.composer.focus();
    await page.keyboard.type("hello elsewhere");
    await page.keyboard.press("Enter");
    await app.log.getByText("said").waitFor();
  });
  assert.notEqual((await desk.session()).cwd, desk.work);
  await job("a second conversation beside", 1, async () => {
    await app.sidebar.getByRole("treeitem", { name: /^A note/ }).click({ modifiers: ["Control"] });
    await until("two panes", async () => (await page.locator(".pane").count()) === 2);
  });
});
