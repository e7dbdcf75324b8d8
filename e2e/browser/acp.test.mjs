// The work of the client for an agent, seen in a browser: files, programs, and the report of the agent's memory.
import assert from "node:assert/strict";
import fs from "node:fs";
import path from "node:path";
import { test } from "node:test";
import { App, Looks } from "./app.mjs";
import { Desk } from "./desk.mjs";

test("files, programs and compactions", async (t) => {
  const desk = await Desk.open(t);
  const app = await App.open(desk, { agent: "Demo agent" });
  const { log, page } = app;
  const looks = new Looks();

  await app.turn("disk");
  assert.match(fs.readFileSync(path.join(desk.work, "deskhand-demo.md"), "utf8"), /Edits so far: 1\n$/);
  await log.getByRole("button", { name: /Created\s*deskhand-demo\.md/ }).click();
  await log.getByRole("figure", { name: "Changes to deskhand-demo.md" }).getByText("Edits so far: 1").waitFor();

  await app.turn("spawn");
  await log.getByRole("button", { name: /Three steps/ }).click();
  await log.getByText("warning: this goes to stderr").waitFor();
  await log.getByText("Exit code 0").waitFor();
  assert.equal(await log.locator("[data-row=terminal]").count(), 0, "the program stands beside the tool call that shows it");
  await looks.at(page, "acp-program");

  await app.turn("compact");
  await log.getByText("The agent has shortened its memory of the conversation").waitFor();
  await log.getByRole("button", { name: "Show summary" }).click();
  await log.getByText("The person tries the").waitFor();
  await looks.at(page, "acp-compaction");

  // A grouped option and a boolean option.
  await page.getByRole("button", { name: /^Model:/ }).click();
  await page.getByRole("listbox", { name: "Model" }).waitFor();
  await looks.at(page, "acp-options");
  looks.done();
});
