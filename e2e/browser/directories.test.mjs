// A conversation with several directories.
import assert from "node:assert/strict";
import fs from "node:fs";
import path from "node:path";
import { test } from "node:test";
import { App, Looks } from "./app.mjs";
import { Desk, shoot, until } from "./desk.mjs";

/** An agent that tells what it was told, and works in several directories where it says so. */
const teller = (directories) => `#!/usr/bin/python3
import json, sys
for line in sys.stdin:
    m = json.loads(line)
    if m.get("method") == "initialize":
        result = {"protocolVersion": 1, "agentCapabilities": {"sessionCapabilities": {${directories ? '"additionalDirectories": {}, ' : ""}"close": {}}}}
    elif m.get("method") == "session/new":
        told = json.dumps(m["params"].get("additionalDirectories"))
        result = {"sessionId": "s"}
    elif m.get("method") == "session/prompt":
        text = {"sessionUpdate": "agent_message_chunk", "content": {"type": "text", "text": "told of " + told}}
        print(json.dumps({"jsonrpc": "2.0", "method": "session/update", "params": {"sessionId": "s", "update": text}}), flush=True)
        result = {"stopReason": "end_turn"}
    else:
        result = {}
    if "id" in m:
        print(json.dumps({"jsonrpc": "2.0", "id": m["id"], "result": result}), flush=True)
`;

async function desk(t) {
  const d = Desk.make(t);
  d.agents([
    { id: "many", name: "Many", command: d.script("many", teller(true)) },
    { id: "one", name: "Single", command: d.script("one", teller(false)) },
  ]);
  await d.start();
  d.other = path.join(d.home, "other");
  d.third = path.join(d.home, "third");
  for (const directory of [d.other, d.third]) fs.mkdirSync(directory);
  return d;
}

const add = (app) => app.button("Add another directory…");
const chips = (app) => app.page.getByRole("list", { name: "Further directories" }).getByRole("listitem");

/** Chooses the directory of the conversation. */
async function here(app, directory) {
  await app.choose("Directory", "Choose a directory…");
  await app.chooseDirectory(directory);
}

/** Adds one by the directory picker of the browser. */
async function pick(app, directory) {
  await add(app).click();
  const dialog = app.page.getByRole("dialog", { name: "Choose a directory" });
  await dialog.getByRole("combobox", { name: "Path" }).fill(directory);
  await dialog.getByRole("button", { name: "Choose", exact: true }).click();
  await dialog.waitFor({ state: "hidden" });
}

test("further directories are chosen, told to the agent and shown", async (t) => {
  const d = await desk(t);
  const looks = new Looks();
  const app = await App.open(d);
  await here(app, d.work);
  await pick(app, d.other);
  await pick(app, d.third);
  await pick(app, d.other); // twice is once
  assert.deepEqual(await chips(app).allInnerTexts(), ["other", "third"]);
  assert.ok(await app.composer.evaluate((field) => field === document.activeElement), "the focus is lost");
  await looks.at(app.page, "directories");
  await app.button("Remove ~/third").click();
  assert.deepEqual(await chips(app).allInnerTexts(), ["other"]);

  await app.write("what were you told?", { agent: "Many" });
  await app.log.getByText(`told of ["${d.other}"]`).waitFor();
  assert.deepEqual((await d.session()).directories, [d.other]);
  const where = app.page.locator("header .where");
  assert.match(await where.innerText(), /~\/project/);
  assert.match(await where.innerText(), /and 1 more/);
  assert.equal(await where.getAttribute("title"), `${d.work}\n${d.other}`);
  await looks.at(app.page, "directories-shown");
  looks.done();
});

test("what was chosen stays when a directory is not taken", async (t) => {
  const d = await desk(t);
  const app = await App.open(d);
  await app.choose("Agent", /^Many/);
  await here(app, d.work);
  await pick(app, d.other);
  await pick(app, d.third);
  fs.rmdirSync(d.third);
  await app.send("help");
  await app.page.getByText(`The directory ${d.third} does not exist.`).waitFor();
  assert.deepEqual(await chips(app).allInnerTexts(), ["other", "third"]);
  await app.page.getByRole("button", { name: "Directory: project" }).waitFor();
  assert.equal(await app.composer.inputValue(), "help");
  await shoot(app.page, "directories-fault");
  await app.button("Remove ~/third").click();
  await app.composer.press("Enter");
  await app.log.waitFor();
  assert.deepEqual((await d.session()).directories, [d.other]);
});

test("an agent that works in one directory alone is told apart", async (t) => {
  const d = await desk(t);
  const app = await App.open(d);
  await here(app, d.work);
  await pick(app, d.other);
  await app.write("what were you told?", { agent: "Single" });
  await app.log.getByText("told of null").waitFor();
  await until("the word about it", async () =>
    /Single works in one directory only/.test(await app.page.locator("header .where").getAttribute("title")));
});

test("at a place elsewhere there is no field for them", async (t) => {
  const there = await Desk.open(t);
  const d = await desk(t);
  const token = fs.readFileSync(path.join(there.data, "deskhand", "token"), "utf8").trim();
  await d.api("POST", "/client/places", { name: "Box", url: there.url.replace(/\/$/, ""), token });
  const app = await App.open(d);
  await here(app, d.work);
  await add(app).waitFor();
  await app.page.getByRole("button", { name: /^Where:/ }).click();
  await app.page.getByRole("option", { name: /Box/ }).click();
  await add(app).waitFor({ state: "hidden" });
});
