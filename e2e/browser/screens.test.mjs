// The main screens: fit for everybody by axe's rules, in light and in dark, and pictures of all of them for people to look at.
import fs from "node:fs";
import path from "node:path";
import { test } from "node:test";
import { App, Looks } from "./app.mjs";
import { Desk } from "./desk.mjs";

test("the screens before a conversation", async (t) => {
  const looks = new Looks();
  const desk = Desk.make(t);
  desk.agents([{ id: "mine", name: "My agent", command: "" }]);
  for (const name of ["a-library", "notes", "website"]) fs.mkdirSync(path.join(desk.home, name));
  await desk.start();
  const app = await App.open(desk);
  await app.button("Where it was searched").first().click();
  await looks.at(app.page, "first-run");
  await app.button("Choose…").click();
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
