// The main screens: fit for everybody by axe's rules, in light and in dark, and pictures of all of them for people to look at.
import assert from "node:assert/strict";
import fs from "node:fs";
import path from "node:path";
import { test } from "node:test";
import { App, Looks } from "./app.mjs";
import { Desk, until } from "./desk.mjs";

test("the screens before a conversation", async (t) => {
  const looks = new Looks();
  const desk = Desk.make(t);
  desk.agents([{ id: "mine", name: "My agent", command: "" }]);
  for (const name of ["a-library", "notes", "website"]) fs.mkdirSync(path.join(desk.home, name));
  await desk.start();
  const app = await App.open(desk);
  await app.chip("Agent").click();
  await app.page.getByRole("option", { name: /^More agents/ }).waitFor();
  await looks.at(app.page, "first-run");
  await app.page.keyboard.press("Escape");

  // In the smallest window what begins the conversation is in sight, and nothing that has the focus lies below it.
  await app.page.setViewportSize({ width: 720, height: 480 });
  const start = app.button("Send");
  const seen = (one) => one.evaluate((element) => {
    const { left, right, top, bottom } = element.getBoundingClientRect();
    const across = (left + right) / 2; // corners are round
    return [top + 2, bottom - 2].every((y) => element.contains(document.elementFromPoint(across, y)));
  });
  await until("Send in sight", () => seen(start));
  await app.composer.fill("Look around");
  await start.focus();
  for (let n = 0; n < 6; n++) {
    await app.page.keyboard.press("Shift+Tab");
    const focused = app.page.locator(":focus");
    assert.ok(await seen(focused), `out of sight: ${await focused.evaluate((one) => one.outerHTML)}`);
  }
  assert.ok(await seen(start));
  await looks.at(app.page, "first-run-small");
  await app.page.setViewportSize({ width: 1280, height: 800 });
  await app.choose("Directory", "Choose a directory…");
  await app.page.getByRole("option", { name: "website" }).waitFor();
  await looks.at(app.page, "directory");
  const out = await desk.page(desk.url);
  await out.getByRole("heading", { name: "Log in with the link" }).waitFor();
  await looks.at(out, "signed-out");
  looks.done();
});

test("a conversation", async (t) => {
  const looks = new Looks();
  const desk = await Desk.open(t);
  const app = await App.open(desk, { agent: "Demo agent" });
  await app.turn("markdown");
  await app.log.press("Home");
  await looks.at(app.page, "markdown");
  await app.log.press("End");
  await app.turn("thought plan diff terminal media notice");
  for (const name of [/^Edit.*greeting/, /go test/, /^Thought/]) await app.log.getByRole("button", { name }).first().click();
  await app.log.getByRole("figure", { name: /greeting\.go/ }).scrollIntoViewIfNeeded();
  await looks.at(app.page, "tools");
  await app.turn("junk");
  await app.turn("error", "Failed");
  await looks.at(app.page, "raw");
  await app.page.keyboard.press("Control+k");
  await app.page.getByRole("dialog").waitFor();
  await looks.at(app.page, "palette");
  await app.page.keyboard.press("Escape");
  await app.composer.fill("/");
  await app.page.getByRole("listbox", { name: "Commands" }).waitFor();
  await looks.at(app.page, "commands");
  looks.done();
});

test("what waits for a person", async (t) => {
  const looks = new Looks();
  const desk = await Desk.open(t);
  const app = await App.open(desk, { agent: "Demo agent" });
  await app.send("Please show me around");
  await app.request.waitFor();
  await looks.at(app.page, "permission");
  for (const [word, name] of [["question", "question"], ["form", "form"], ["unknown request", "unknown-request"]]) {
    await app.button("New conversation", app.sidebar).click();
    await app.begin("Demo agent", desk.work);
    await app.send(word);
    await app.request.waitFor();
    await looks.at(app.page, name);
  }
  await app.button(/^Inbox/, app.sidebar).click();
  await app.page.getByRole("option").nth(3).waitFor();
  await looks.at(app.page, "inbox");
  looks.done();
});

test("a dead agent, a directory that is not there, and a small window", async (t) => {
  const looks = new Looks();
  const desk = await Desk.open(t);
  const app = await App.open(desk, { agent: "Demo agent" });
  await app.turn("crash", "Agent ended");
  await app.exit.waitFor();
  await looks.at(app.page, "agent-dead");
  await app.page.setViewportSize({ width: 720, height: 480 });
  await app.turn("diff");
  await looks.at(app.page, "small");
  await app.button("Show or hide the sidebar").click();
  await app.sidebar.waitFor();
  await looks.at(app.page, "small-sidebar");
  looks.done();
});

test("from where agents fetch files, and how much they give, is set in the settings", async (t) => {
  const desk = await Desk.open(t);
  const app = await App.open(desk);
  const { page } = app;
  await app.settingsOf("Files from agents");
  const part = page.getByRole("region", { name: "Files from agents" });
  const field = (name) => part.getByRole("textbox", { name });
  const set = async () => {
    const { downloadHosts, attachmentFileMiB, attachmentCallMiB } = await desk.api("GET", "/client/settings");
    return [downloadHosts, attachmentFileMiB, attachmentCallMiB];
  };
  const before = await set();
  await field("Hosts to fetch attachments from").fill("https://files.example.org/x");
  await field("Largest file, in MB").fill("51");
  await field("Largest total, in MB").fill("");
  await page.keyboard.press("Enter");
  // What is wrong is said at its field, the first of them has the focus, and nothing is saved.
  await part.getByText("Enter host names, separated by commas.").waitFor();
  for (const most of [50, 200]) await part.getByText(`Enter a whole number from 1 to ${most}.`).waitFor();
  assert.ok(await field("Hosts to fetch attachments from").evaluate((one) => one === document.activeElement));
  assert.deepEqual(await set(), before);
  await page.keyboard.press("Control+a");
  await page.keyboard.type("files.example.org, cdn.example.org:8443");
  await field("Largest file, in MB").fill("40");
  await field("Largest total, in MB").fill("150");
  await page.keyboard.press("Enter");
  await part.getByText("Saved", { exact: true }).waitFor();
  assert.deepEqual(await set(), ["files.example.org, cdn.example.org:8443", 40, 150]);
  // None is said by an empty field; and what another window sets is shown here.
  await field("Hosts to fetch attachments from").fill("");
  await app.button("Save", part).click();
  await until("no host", async () => (await set())[0] === "");
  await part.getByText("Saved", { exact: true }).waitFor(); // its answer, taken later, would put the old number back
  await desk.api("PATCH", "/client/settings", { attachmentFileMiB: 7 });
  await until("the other window's", async () => (await field("Largest file, in MB").inputValue()) === "7");
});
