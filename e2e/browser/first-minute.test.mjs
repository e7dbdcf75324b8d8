// The first minute of a person who has never seen Deskhand: start, type, watch, approve, read the diff, take it back. Without a detour, and with
// the clicks counted.
import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import fs from "node:fs";
import path from "node:path";
import { test } from "node:test";
import { App, Looks } from "./app.mjs";
import { Desk, shoot } from "./desk.mjs";

test("the first minute: start, type, watch, approve, read the diff, take it back", async (t) => {
  const looks = new Looks();
  const desk = await Desk.open(t);
  const app = await App.open(desk, { viewport: { width: 1440, height: 900 } });
  const { page } = app;
  let clicks = 0;
  const click = async (locator) => {
    await locator.click();
    clicks++;
  };

  // The composer has the focus; beside the demo agent nothing has to be chosen.
  await page.getByRole("button", { name: "Agent: Demo agent" }).waitFor();
  await page.getByRole("button", { name: "Directory: Sample project" }).waitFor();
  await page.getByRole("list", { name: "First messages" }).getByText("Fix the failing test").waitFor();
  assert.ok(await app.composer.evaluate((field) => field === document.activeElement), "the composer has no focus");
  assert.deepEqual((await desk.api("GET", "/client/sessions")).items, []);
  await looks.at(page, "start");
  await page.setViewportSize({ width: 720, height: 480 });
  await looks.at(page, "start-small");
  await page.setViewportSize({ width: 1440, height: 900 });

  // Type and Enter; watch it read and run.
  await page.keyboard.type("Fix the failing test");
  await page.keyboard.press("Enter");
  await app.request.waitFor();
  const { cwd, title } = await desk.session();
  assert.equal(title, "Fix the failing test");
  assert.equal(cwd, path.join(desk.cache, "deskhand", "demo", "corner-shop"));
  await app.log.getByText("takes ten percent off").waitFor();
  assert.match(git(cwd, "log", "--format=%s"), /^Add up a basket$/);
  const code = path.join(cwd, "total.sh");
  const before = fs.readFileSync(code, "utf8");
  assert.match(before, /-gt 100/);
  await shoot(page, "start-approval");

  // Approve: one click.
  clicks = 0;
  await app.unguarded();
  await click(app.button("Allow once", app.request));
  await app.footers.getByText("Done", { exact: true }).waitFor();
  assert.equal(clicks, 1);
  await app.log.getByText("All tests pass.").waitFor();
  assert.equal(fs.readFileSync(code, "utf8"), before.replace("-gt 100", "-ge 100"));
  execFileSync("sh", [path.join(cwd, "test.sh")]);

  // Read the turn's diff: one click.
  clicks = 0;
  await click(app.footers.last().getByRole("button", { name: /^1 file/ }));
  const panel = page.getByRole("complementary", { name: "Side panel" });
  await panel.getByText("total.sh").first().waitFor();
  await panel.getByText("-ge 100").first().waitFor();
  assert.equal(clicks, 1);
  await looks.at(page, "start-diff");

  // Revert it: two clicks.
  clicks = 0;
  await click(app.footers.last().locator('[data-command="undoTurn"]'));
  const dialog = page.getByRole("dialog");
  await dialog.waitFor();
  await click(dialog.getByRole("button", { name: /1 file/ }));
  await dialog.waitFor({ state: "hidden" });
  assert.equal(clicks, 2);
  assert.equal(fs.readFileSync(code, "utf8"), before);
  looks.done();
});

const git = (cwd, ...args) => execFileSync("git", ["-C", cwd, ...args], { encoding: "utf8" }).trim();

test("a first message of the demo each: a plan, a question, a picture; and a fix that is there already", async (t) => {
  const desk = await Desk.open(t);
  const app = await App.open(desk);
  const begin = async (text) => {
    await app.button("New conversation", app.sidebar).click();
    await app.button(text).click();
    await app.composer.press("Enter");
    await app.log.waitFor();
  };
  const done = () => app.footers.last().getByText("Done", { exact: true }).waitFor();

  await begin("Plan how to print a receipt");
  await done();
  await app.log.getByText("This is how I would go about it").waitFor();

  await begin("Ask me which currency to use");
  await app.request.getByRole("radio", { name: "Pound (£)" }).check();
  await app.button("Send answer", app.request).click();
  await app.log.getByText("45 £").waitFor();
  await done();

  await begin("Show the prices as a picture");
  await app.log.getByRole("img").first().waitFor();
  await done();

  const { cwd } = await desk.session();
  fs.writeFileSync(path.join(cwd, "total.sh"), fs.readFileSync(path.join(cwd, "total.sh"), "utf8").replace("-gt 100", "-ge 100"));
  await begin("Fix the failing test");
  await done();
  await app.log.getByText("The bug is fixed already").waitFor();
});
