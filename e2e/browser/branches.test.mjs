// A message that is said differently: the conversation goes on in a branch, and the files go back, in Chromium.
import assert from "node:assert/strict";
import fs from "node:fs";
import path from "node:path";
import { test } from "node:test";
import { App, Looks } from "./app.mjs";
import { Desk, until } from "./desk.mjs";

/** An agent that writes the files that its prompt names, and tells what it was given. */
const writer = `#!/usr/bin/env node
const fs = require("fs");
let sessions = 0;
require("readline").createInterface({ input: process.stdin }).on("line", (line) => {
  const { id, method, params } = JSON.parse(line);
  const send = (message) => console.log(JSON.stringify({ jsonrpc: "2.0", ...message }));
  if (method === "initialize") send({ id, result: { protocolVersion: 1, agentCapabilities: { promptCapabilities: { embeddedContext: true } } } });
  if (method === "session/new") send({ id, result: { sessionId: "s" + ++sessions + "-" + process.pid } });
  if (method !== "session/prompt") return;
  const text = params.prompt.filter((block) => block.type === "text").map((block) => block.text).join("\\n");
  const said = params.prompt.flatMap((block) => (block.type === "resource" ? [block.resource.text] : [])).join("\\n");
  for (const [, name, content] of text.matchAll(/(\\S+\\.txt)=(\\S+)/g)) fs.writeFileSync(name, content + "\\n");
  // A prompt that says so waits for a file, so that its turn runs as long as the test wants.
  while (/ wait$/.test(text) && !fs.existsSync("go")) Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, 50);
  const answer = "Done: " + text + (said ? "\\n\\nKnown: " + [...said.matchAll(/\\S+\\.txt=\\S+/g)].join(" ") : "");
  send({ method: "session/update", params: { sessionId: params.sessionId, update: { sessionUpdate: "agent_message_chunk", content: { type: "text", text: answer } } } });
  send({ id, result: { stopReason: "end_turn" } });
});
`;

test("a message is edited from here: the talk goes on in a branch, files go back, and both branches are reached", async (t) => {
  const looks = new Looks();
  const desk = await Desk.open(t);
  desk.agents([{ id: "writer", name: "Writer", command: desk.script("writer.js", writer) }]);
  const read = (name) => fs.readFileSync(path.join(desk.work, name), "utf8").trim();
  const app = await App.open(desk, { agent: "Writer" });
  await app.turn("make a.txt=one");
  await app.turn("make a.txt=two b.txt=new");
  await app.turn("make a.txt=three");
  const parent = await desk.session();

  const message = app.log.getByRole("article", { name: "You" }).filter({ hasText: "b.txt=new" });
  await message.hover();
  await app.button("Edit from here", message).click();
  const dialog = app.page.getByRole("dialog", { name: "Edit from here" });
  await dialog.getByRole("checkbox", { name: "Put 2 files back to how they were before this message" }).waitFor();
  await dialog.getByRole("button", { name: /b\.txt.*Will be deleted/ }).waitFor();
  await dialog.getByRole("button", { name: /a\.txt/ }).click();
  await dialog.getByText("three", { exact: true }).waitFor();
  await looks.at(app.page, "branch-edit");
  const field = dialog.getByRole("textbox", { name: "Message" });
  assert.equal(await field.inputValue(), "make a.txt=two b.txt=new");
  await field.fill("make c.txt=instead");
  await app.button("Send in a branch", dialog).click();
  await dialog.waitFor({ state: "detached" });

  await app.log.getByText("Known: a.txt=one").waitFor();
  await app.log.getByText("Branched here: Writer has not seen what is above, and is given it as a file").waitFor();
  assert.equal(await app.log.getByText("a.txt=three").count(), 0, "what came after the message");
  assert.equal(read("a.txt"), "one");
  assert.equal(read("c.txt"), "instead");
  assert.ok(!fs.existsSync(path.join(desk.work, "b.txt")), "b.txt was made after the message");
  await app.log.getByText("Branch 2 of 2").waitFor();
  assert.equal(await app.composer.inputValue(), "", "the draft was sent");
  await app.page.getByRole("button", { name: /^\+1 −\d+ in 1 file$/ }).waitFor();
  await looks.at(app.page, "branch");

  await app.button("Previous branch", app.log).click();
  await app.log.getByText("Branch 1 of 2").waitFor();
  await app.log.getByText("make a.txt=three").first().waitFor();
  await app.button("Next branch", app.log).click();
  await app.log.getByText("Branch 2 of 2").waitFor();

  // The first message of a branch offers to restore what went back for it, as long as no turn runs.
  const first = app.log.getByRole("article", { name: "You" }).filter({ hasText: "c.txt=instead" });
  await first.getByText("2 files are as they were before the message").waitFor();
  await first.hover();
  await app.button("Edit from here", first).click();
  await dialog.getByRole("button", { name: /c\.txt.*Will be deleted/ }).waitFor();
  await field.fill("make d.txt=another wait");
  await app.button("Send in a branch", dialog).click();
  await dialog.waitFor({ state: "detached" });
  const newest = app.log.getByRole("article", { name: "You" }).filter({ hasText: "d.txt=another" });
  await newest.getByText("1 file is as it was before the message").waitFor();
  await newest.getByText("A turn is running in this directory").waitFor();
  assert.ok(await app.button("Restore files", newest).isDisabled(), "nothing is restored while a turn runs");
  await looks.at(app.page, "branch-restore");
  assert.ok(!fs.existsSync(path.join(desk.work, "c.txt")), "c.txt was made after the message");
  fs.writeFileSync(path.join(desk.work, "go"), "");
  await app.footers.last().getByText("Done", { exact: true }).waitFor();
  await until("the files may be restored", () => app.button("Restore files", newest).isEnabled());
  await app.button("Restore files", newest).click();
  await newest.getByText("The files are as they were before the edit.").waitFor();
  assert.equal(read("c.txt"), "instead");
  assert.equal(read("d.txt"), "another");
  await looks.at(app.page, "branch-restored");

  const entries = await desk.entries(parent.id);
  assert.equal(entries.filter(({ kind }) => kind === "user").length, 3, "the parent has all of its messages");
  looks.done();
});
