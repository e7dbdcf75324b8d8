// Stop, while an agent starts that never gets ready.
import assert from "node:assert/strict";
import fs from "node:fs";
import path from "node:path";
import { test } from "node:test";
import { App, Looks } from "./app.mjs";
import { Desk, until } from "./desk.mjs";

/** An agent that reads all it is told, and answers nothing. */
const mute = "#!/bin/sh\necho $$ > \"$(dirname \"$0\")/mute.pid\"\nwhile read -r line; do :; done\n";

async function open(t) {
  const desk = Desk.make(t);
  desk.agents([{ id: "mute", name: "Mute", command: desk.script("mute", mute) }]);
  await desk.start();
  desk.alive = () => fs.existsSync(`/proc/${fs.readFileSync(path.join(desk.dir, "mute.pid"), "utf8").trim()}`);
  return desk;
}

test("a start that hangs is stopped by its button", async (t) => {
  const looks = new Looks();
  const desk = await open(t);
  const app = await App.open(desk, { agent: "Mute" });
  await until("the agent", () => desk.alive());
  await app.button("Stop").waitFor();
  await looks.at(app.page, "stop-start");
  const begun = Date.now();
  await app.button("Stop").click();
  await until("the end of the start", async () => (await desk.session()).phase === "closed");
  await until("the end of the process", () => !desk.alive());
  t.diagnostic(`the start was stopped after ${Date.now() - begun} ms`);
  assert.equal((await desk.session()).exit, undefined);
  await app.button("Stop").waitFor({ state: "hidden" });
  looks.done();
});

test("a message that waits for it comes back, and what is queued stays", async (t) => {
  const looks = new Looks();
  const desk = await open(t);
  const app = await App.open(desk, { agent: "Mute" });
  await app.send("first");
  await app.page.getByText("Sends as soon as Mute is ready").waitFor();
  await app.send("second");
  await app.page.getByRole("listitem").filter({ hasText: "second" }).first().waitFor();
  await until("empty composer", async () => (await app.composer.inputValue()) === ""); // what comes back must find nothing there
  await until("the agent", () => desk.alive());
  await app.holds(2_000);
  await app.composer.press("Escape");
  await app.page.getByText("Press Esc again to stop").waitFor();
  await app.twice("Escape");
  await until("the end of the process", () => !desk.alive());
  await app.page.getByText("Held: the turn was stopped").waitFor();
  await until("the message", async () => (await app.composer.inputValue()) === "first");
  await looks.at(app.page, "stop-start-message");
  await app.page.reload();
  await app.composer.waitFor();
  assert.equal(await app.composer.inputValue(), "first");
  await app.page.getByText("Held: the turn was stopped").waitFor();
  looks.done();
});
