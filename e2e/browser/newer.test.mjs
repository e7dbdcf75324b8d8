// Data that a newer version of Deskhand has written is shown, and left as it is.
import assert from "node:assert/strict";
import crypto from "node:crypto";
import fs from "node:fs";
import path from "node:path";
import { test } from "node:test";
import { App, Looks } from "./app.mjs";
import { Desk, until } from "./desk.mjs";

test("what a newer version has written is read, and not changed", async (t) => {
  const looks = new Looks();
  const desk = await Desk.open(t);
  const first = await App.open(desk, { agent: "Demo agent" });
  await first.turn("echo the quick zeppelin");
  const { id } = await desk.session();
  await first.composer.fill("a draft");
  await first.page.close();
  await until("the index", async () => (await desk.api("GET", "/client/storage")).pending === 0); // later nobody makes it
  await desk.stop();

  // The version of the schema is four bytes of the header of SQLite's file, at 60.
  const data = path.join(desk.data, "deskhand");
  const file = path.join(data, "deskhand.db");
  const handle = fs.openSync(file, "r+");
  fs.writeSync(handle, Buffer.from([0, 0, 0, 99]), 0, 4, 60);
  fs.closeSync(handle);
  fs.writeFileSync(path.join(data, "written-by"), "99.0\n");
  const sum = () => crypto.createHash("sha256").update(fs.readFileSync(file)).digest("hex");
  const before = sum();

  await desk.start();
  const app = new App(await desk.page(), desk);
  await app.page.getByRole("alert").getByText(/^Deskhand 99\.0 wrote these conversations/).waitFor();
  await app.page.getByText("Choose a conversation to read it.").waitFor();
  await looks.at(app.page, "newer-start");
  await app.sidebar.getByText("the quick zeppelin").first().click();
  await app.log.getByText("the quick zeppelin").first().waitFor();
  assert.equal(await app.composer.count(), 0);
  await looks.at(app.page, "newer");
  await app.button("Conversation actions").click();
  await app.page.getByRole("menuitem").first().waitFor(); // the menu is loaded with its first use
  assert.deepEqual(await app.page.getByRole("menuitem").allInnerTexts(), ["Files…", "Copy session ID", "Export"]);
  await app.page.keyboard.press("Escape");
  await app.page.keyboard.press("Control+Shift+F");
  await app.page.getByRole("combobox", { name: "Search all conversations" }).fill("zeppelin");
  await app.page.getByRole("listbox", { name: "Results" }).getByRole("option").filter({ hasText: "zeppelin" }).first().waitFor();

  const { status, data: problem } = await desk.call("POST", `/client/sessions/${id}/prompt`, { message: "x" });
  assert.deepEqual([status, problem.code, problem.params.version], [409, "storage.newer", "99.0"]);
  await desk.stop();
  assert.equal(sum(), before, "the database is another");
  looks.done();
});
