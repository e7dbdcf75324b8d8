// Conversations come, go, move and are looked through: all of it by keyboard, on screens that are fit for everybody.
import assert from "node:assert/strict";
import fs from "node:fs";
import path from "node:path";
import { test } from "node:test";
import { App, Looks } from "./app.mjs";
import { Desk, testAgents, until } from "./desk.mjs";

/** The larger of the two sizes that are looked at. */
const viewport = { width: 1440, height: 900 };
const small = { width: 720, height: 480 };

/** Gives a session prompts, one after the other. */
async function say(desk, id, ...prompts) {
  for (const message of prompts) {
    await desk.api("POST", `/client/sessions/${id}/prompt`, { message });
    await until("the end of the turn", async () => !(await desk.api("GET", `/client/sessions/${id}`)).turn);
  }
}

async function begin(desk, cwd, title, agent = "mock") {
  const { id } = await desk.api("POST", "/client/sessions", { agent, cwd });
  await until("the agent", async () => (await desk.api("GET", `/client/sessions/${id}`)).phase === "ready");
  await desk.api("PATCH", `/client/sessions/${id}`, { title });
  return id;
}

/** Waits until everything that was said in a session can be found. */
async function indexed(desk, id, word) {
  await until("the index", async () => {
    const found = await desk.api("GET", `/client/search?q=${word}&session=${id}&limit=1`);
    return found.items.length > 0 && !found.pending;
  });
}

/** A directory of the desk. */
function directory(desk, name) {
  const made = path.join(desk.home, name);
  fs.mkdirSync(made, { recursive: true });
  return made;
}

const row = (app, name) => app.sidebar.getByRole("treeitem", { name });

/** Opens the menu of a row of the sidebar, by keyboard. */
async function menu(app, name) {
  await row(app, name).focus();
  await app.page.keyboard.press("Shift+F10");
  await app.page.getByRole("menu").waitFor();
}

const item = (app, name) => app.page.getByRole("menuitem", { name });

/** What is marked in the transcript: the words of all places, and of the one where one is. */
const marked = (app) =>
  app.page.evaluate(() => {
    const words = (name) => [...(CSS.highlights.get(name) ?? [])].map(String);
    return { hits: words("deskhand-find"), current: words("deskhand-find-current") };
  });

/** Whether the words where one is can be seen. */
const inSight = (app) =>
  app.page.evaluate(() => {
    const [range] = CSS.highlights.get("deskhand-find-current") ?? [];
    const box = range?.getBoundingClientRect();
    const frame = document.querySelector("[role=log]").getBoundingClientRect();
    return box !== undefined && box.height > 0 && box.top >= frame.top && box.bottom <= frame.bottom;
  });

test("finding in a conversation, by keyboard alone", async (t) => {
  const desk = await Desk.open(t);
  const looks = new Looks();
  const id = await begin(desk, desk.work, "The long one");
  const note = (n) => `echo\nnote ${n}: ${n % 50 === 7 ? "The *Zürich* lighthouse stands" : "nothing happened"}`;
  await say(desk, id, ...Array.from({ length: 230 }, (_, n) => note(n + 1)), "thought");
  const other = await begin(desk, directory(desk, "other"), "The other one");
  await say(desk, other, "echo\nanother lighthouse");
  await indexed(desk, id, "repeat");
  const app = await App.open(desk, { viewport });
  await row(app, /The long one/).click();
  await app.composer.focus();

  const bar = app.page.getByRole("search", { name: "Find in this conversation" });
  const field = bar.getByRole("textbox");
  const said = bar.getByRole("status").first();
  await app.page.keyboard.press("Control+f");
  await until("the field's focus", () => field.evaluate((one) => one === document.activeElement));
  await app.page.keyboard.type("zurich light");
  // Five notes, each said and answered; the last is the nearest to the end.
  await until("the places", async () => (await said.textContent()) === "10 of 10");
  await until("the last place", () => inSight(app));
  assert.deepEqual((await marked(app)).current, ["Zürich", "lighthouse"]);
  assert.ok(!(await marked(app)).hits.some((words) => !/^(Zürich|lighthouse)$/.test(words)));
  await looks.at(app.page, "find");
  assert.ok(await field.evaluate((one) => one === document.activeElement), "the field keeps the focus");

  // On from the last is the first, which was not even loaded; back is the last again.
  await app.page.keyboard.press("Enter");
  await until("the first place", async () => (await said.textContent()) === "1 of 10" && (await inSight(app)));
  await app.log.getByText("note 7:").first().waitFor();
  await app.page.keyboard.press("Enter");
  await until("the second", async () => (await said.textContent()) === "2 of 10" && (await inSight(app)));
  await app.page.keyboard.press("Shift+Enter");
  await app.page.keyboard.press("Shift+Enter");
  await until("the last again", async () => (await said.textContent()) === "10 of 10" && (await inSight(app)));

  // What is said meanwhile is counted, and moves nothing.
  await say(desk, id, "echo\nanother Zürich lighthouse");
  await until("the new places", async () => (await said.textContent()) === "10 of 12");
  assert.ok(await inSight(app));

  // What is folded is open where it is found; where nothing is, that is told.
  await field.fill("own words");
  await until("the thought", async () => (await said.textContent()) === "1 of 1" && (await inSight(app)));
  await field.fill("dirigible");
  await until("nothing", async () => (await said.textContent()) === "Nothing found");
  await looks.at(app.page, "find-none");
  await field.fill("?!");
  await bar.getByText("Nothing to search for").waitFor();
  await field.fill("zurich");
  await until("the places again", async () => /of 12$/.test(await said.textContent()));
  await app.page.setViewportSize(small);
  await until("the place", () => inSight(app));
  await looks.at(app.page, "find-small");

  // Away, and back where one was.
  await app.page.keyboard.press("Escape");
  assert.equal(await bar.count(), 0);
  assert.ok(await app.composer.evaluate((one) => one === document.activeElement), "the focus is back");
  assert.deepEqual(await marked(app), { hits: [], current: [] });
  looks.done();
});

test("a conversation is deleted, and is back when that is taken back", async (t) => {
  const desk = await Desk.open(t);
  const looks = new Looks();
  const kept = await begin(desk, desk.work, "The one that stays");
  const id = await begin(desk, desk.work, "The one that goes");
  await say(desk, id, "echo\nquicksilver");
  await indexed(desk, id, "quicksilver");
  const app = await App.open(desk, { viewport });
  const elsewhere = await App.open({ ...desk, page: desk.page.bind(desk), link: (await desk.api("POST", "/client/links")).url });
  await row(app, /that goes/).click();
  await row(elsewhere, /that goes/).click();
  await elsewhere.log.getByText("quicksilver").first().waitFor();

  const letGo = await app.holds(5_000);
  await menu(app, /that goes/);
  await looks.at(app.page, "session-menu");
  await item(app, /^Delete/).click();
  await until("the end of it, here and elsewhere", async () =>
    (await row(app, /that goes/).count()) + (await row(elsewhere, /that goes/).count()) === 0);
  await app.button("Undo").focus();
  await app.page.keyboard.press("Enter");
  await row(app, /that goes/).waitFor();
  await row(elsewhere, /that goes/).waitFor();
  await app.log.getByText("quicksilver").first().waitFor();

  // By keys from the list, and taken back by keys.
  await row(app, /that stays/).click();
  await row(app, /that goes/).focus();
  await app.page.keyboard.press("Shift+Delete");
  await until("the end of it", async () => (await row(app, /that goes/).count()) === 0);
  await until("the next row's focus", () => row(app, /that stays/).evaluate((one) => one === document.activeElement));
  await app.button("Undo").waitFor(); // told by the answer, which may come after the event
  await app.page.keyboard.press("Control+z");
  await row(app, /that goes/).waitFor();

  // The time of the offer begins with the answer, however late it is.
  let answer;
  const late = new Promise((done) => (answer = done));
  const slowly = async (route) => {
    const response = await route.fetch();
    await late;
    await route.fulfill({ response });
  };
  await app.button("Undo").waitFor({ state: "detached" });
  await app.page.route(`**/client/sessions/${id}`, slowly);
  await row(app, /that goes/).focus();
  await app.page.keyboard.press("Shift+Delete");
  await until("the deletion", async () => (await desk.call("GET", `/client/sessions/${id}`)).status === 404);
  assert.equal(await app.button("Undo").count(), 0, "Undo is offered before the answer");
  answer();
  await app.button("Undo").click();
  await row(app, /that goes/).waitFor();
  await app.page.unroute(`**/client/sessions/${id}`, slowly);

  // From the palette; this time it is meant.
  await row(app, /that goes/).click();
  await app.page.keyboard.press("Control+k");
  await app.page.keyboard.type("delete this");
  await app.page.keyboard.press("Enter");
  await app.page.getByText("Deleted “The one that goes”").last().waitFor();
  await looks.at(app.page, "deleted");
  await until("the end of it", async () => (await row(app, /that goes/).count()) + (await row(elsewhere, /that goes/).count()) === 0);
  await elsewhere.page.getByRole("heading", { name: "New conversation" }).waitFor();
  assert.equal((await desk.call("GET", `/client/sessions/${id}`)).status, 404);
  await letGo();
  await until("the end of the offer", async () => (await app.button("Undo").count()) === 0);
  await until("its end for good", async () => (await desk.api("GET", "/client/storage")).sessions === 1);
  assert.equal((await desk.call("POST", `/client/sessions/${id}/restore`)).status, 404);
  const { items } = await desk.api("GET", "/client/sessions");
  assert.deepEqual(items.map((one) => one.id), [kept]);
  looks.done();
});

test("a directory that has moved is linked again", async (t) => {
  const desk = await Desk.open(t);
  const looks = new Looks();
  const before = directory(desk, "projects/lighthouse");
  const id = await begin(desk, before, "About the light");
  await say(desk, id, "echo\nhello");
  await desk.stop();
  const after = path.join(desk.home, "projects", "beacon");
  fs.renameSync(before, after);
  fs.mkdirSync(path.join(desk.home, "projects", "third"));
  await desk.start();
  const app = await App.open(desk, { viewport });
  const there = async () => (await desk.api("GET", `/client/sessions/${id}`)).workspace;
  if ((await there()).missing) {
    await row(app, /About the light/).click();
    await app.page.getByText("is missing. The conversation is kept").waitFor();
    await looks.at(app.page, "missing");
    await menu(app, /About the light/);
    await item(app, "Locate directory…").click();
    const dialog = app.page.getByRole("dialog", { name: "Locate a directory" });
    await until("the suggestion", async () => (await dialog.getByRole("textbox").inputValue()) === after);
    await looks.at(app.page, "relink");
    await app.page.setViewportSize(small);
    await looks.at(app.page, "relink-small");
    await dialog.getByRole("textbox").focus();
    await app.page.keyboard.press("Enter");
    await until("the directory", async () => !(await there()).missing);
    await dialog.waitFor({ state: "detached" }); // the page hears of it later than we do
    await app.page.getByText("is missing. The conversation is kept").waitFor({ state: "detached" });
  }
  assert.equal((await there()).path, after);
  await app.turn("echo\nthere again");
  looks.done();
});

test("the data is told, verified and repaired in the settings", async (t) => {
  const desk = await Desk.open(t);
  const looks = new Looks();
  const id = await begin(desk, desk.work, "Kept");
  await say(desk, id, "echo\nhello", "diff");
  const app = await App.open(desk, { viewport });
  await app.settingsOf("Data");
  const data = app.page.getByRole("region", { name: "Data" });
  await data.getByText("Database", { exact: true }).waitFor();
  await data.getByText(desk.data.replace(desk.home, "~"), { exact: false }).first().waitFor();
  await app.button("Verify now").focus();
  await app.page.keyboard.press("Enter");
  await data.getByText("Everything is as it should be").waitFor();
  await data.evaluate((one) => one.scrollIntoView({ block: "end" }));
  await looks.at(app.page, "data");

  // A directory that is missing is found out, and leads to where it is linked again.
  const gone = directory(desk, "gone");
  await begin(desk, gone, "Homeless");
  fs.rmdirSync(gone);
  await app.button("Verify now").press("Enter");
  await data.getByText(`The directory ${gone} is missing.`).waitFor();
  await app.button("Locate directory…", data).press("Enter");
  await app.page.getByRole("dialog", { name: "Locate a directory" }).waitFor();
  await app.page.keyboard.press("Escape");
  looks.done();
});

test("what a verification found is told in words, and repaired", async (t) => {
  const desk = await Desk.open(t);
  const looks = new Looks();
  const id = await begin(desk, desk.work, "Kept");
  const asked = [];
  const found = (repaired) => [
    { code: "agent.offers", params: { agent: "mock", acpSessionId: "x", title: "Elsewhere", cwd: desk.work }, repaired: false },
    { code: "entries.differ", session: id, params: { missing: "2", different: "1", extra: "0" }, repaired },
    { code: "journal.gap", session: id, params: { frame: "17", next: "19" }, repaired: false },
    { code: "blob.unused", params: { count: "3", bytes: "52000" }, repaired },
  ];
  // Damage of these kinds is made, and mended, by the tests of the backend; here its answers are played.
  const app = await App.open(desk, { viewport });
  let now = { state: "running", done: 120, total: 4210, findings: [] };
  await app.page.route("**/client/verify", async (route) => {
    const request = route.request();
    if (request.method() === "POST") {
      asked.push(request.postDataJSON());
      now = { state: "done", endedAt: new Date().toISOString(), done: 4210, total: 4210, findings: found(asked.at(-1).repair === true) };
    }
    if (request.method() === "DELETE") now = { ...now, state: "cancelled" };
    await route.fulfill(request.method() === "DELETE" ? { status: 204 } : { json: now });
  });
  const storage = await desk.api("GET", "/client/storage");
  await app.page.route("**/client/storage", (route) =>
    route.fulfill({ json: { ...storage, databaseBytes: 812_000_000, blobBytes: 96_000_000, blobs: 1204, pending: 31, rebuilding: { done: 1200, total: 5000 } } }));
  await app.settingsOf("Data");
  const data = app.page.getByRole("region", { name: "Data" });
  await data.getByRole("progressbar", { name: "Verifying" }).waitFor();
  await app.button(/^Rebuilding transcripts/, app.status).waitFor();
  await data.evaluate((one) => one.scrollIntoView({ block: "end" }));
  await looks.at(app.page, "data-running");
  await app.button("Cancel", data).press("Enter");
  await app.page.reload();
  await app.settingsOf("Data");
  await data.getByText("Cancelled").waitFor();
  await data.getByRole("checkbox").press("Space");
  await app.button("Verify now").press("Enter");
  await data.getByText("2 problems found").waitFor();
  const lines = data.getByRole("list", { name: "What was found" }).getByRole("listitem");
  assert.match((await lines.allTextContents()).join("|"), /transcript does not match.*2 missing.*\|.*journal is missing.*\|.*“Elsewhere”.*\|.*3, 51 KB/s);
  await data.evaluate((one) => one.scrollIntoView({ block: "end" }));
  await looks.at(app.page, "data-found");
  await app.page.setViewportSize(small);
  await data.evaluate((one) => one.scrollIntoView({ block: "end" }));
  await looks.at(app.page, "data-small");
  await app.button("Repair", data).press("Enter");
  await data.getByText("1 problem found").waitFor();
  assert.deepEqual(asked, [{ agents: true }, { agents: true, repair: true }]);
  await app.button("Kept", data).first().press("Enter");
  await app.page.getByRole("heading", { name: "Kept" }).waitFor();
  looks.done();
});

/** The demo agent once more, under another name; it keeps its conversations where the built-in one does. */
const twin = (id, name, env = {}) => ({ id, name, command: testAgents(), args: ["demo-agent"], env });

test("a conversation is forked, and goes on with another agent", async (t) => {
  const desk = Desk.make(t);
  const looks = new Looks();
  desk.agents([twin("mate", "Mate")]);
  await desk.start();
  const id = await begin(desk, desk.work, "The first one");
  await say(desk, id, "echo\nthe lighthouse is red");
  const app = await App.open(desk, { viewport });
  await row(app, /The first one/).click();

  // One that takes its time says so, and leaves nothing once it is given up.
  let go;
  const held = new Promise((done) => (go = done));
  await app.page.route("**/fork", (route) => held.then(() => route.continue()), { times: 1 });
  await menu(app, /The first one/);
  await item(app, "Fork").press("Enter");
  const forking = app.page.getByText("Forking “The first one”…");
  await forking.waitFor();
  await looks.at(app.page, "forking");
  await app.button("Cancel").press("Enter");
  await forking.waitFor({ state: "detached" });
  const deleted = app.page.waitForResponse((response) => response.request().method() === "DELETE");
  go();
  assert.equal((await deleted).status(), 204);
  assert.deepEqual((await desk.api("GET", "/client/sessions")).items.map((one) => one.id), [id]);

  await menu(app, /^The first one,/); // the row of what was given up may be there for a moment
  await item(app, "Fork").press("Enter");
  const origin = app.page.getByRole("button", { name: "Forked from “The first one”" });
  await origin.waitFor();
  await app.log.getByText("the lighthouse is red").first().waitFor();
  const fork = await desk.session();
  assert.notEqual(fork.id, id);
  assert.equal(fork.origin.session, id);
  await app.turn("echo\nonly in the fork");
  await looks.at(app.page, "fork");
  await origin.focus();
  await app.page.keyboard.press("Enter");
  await until("the first one again", async () => (await app.page.getByRole("heading", { name: "The first one", exact: true }).count()) === 1 && (await origin.count()) === 0);
  assert.equal(await app.log.getByText("only in the fork").count(), 0);

  // To the other agent, by the menu of the head; its draft holds what is handed over.
  await app.button("Conversation actions").focus();
  await app.page.keyboard.press("Enter");
  await item(app, "Continue with another agent").press("Enter");
  await item(app, /^Mate/).waitFor();
  await looks.at(app.page, "continue-menu");
  await app.page.keyboard.press("Enter");
  await app.page.getByRole("button", { name: "Continues “The first one” with Mate" }).waitFor();
  await until("the draft", async () => /lighthouse/.test(await app.composer.inputValue()));
  await looks.at(app.page, "continued");
  await app.page.setViewportSize(small);
  await looks.at(app.page, "continued-small");
  const next = await desk.session();
  assert.deepEqual([next.agent, next.origin.kind, next.origin.session], ["mate", "continue", id]);

  // What it came from may go: the link then says so.
  await app.page.setViewportSize(viewport);
  await row(app, /The first one/).first().waitFor();
  const before = await row(app, /The first one/).count();
  await desk.api("DELETE", `/client/sessions/${id}`);
  await until("the row is gone", async () => (await row(app, /The first one/).count()) === before - 1);
  await app.page.getByRole("button", { name: /^Continues “The first one”/ }).click();
  await app.page.getByText("That is no longer there.").waitFor();
  looks.done();
});

test("an agent that has lost a conversation is told what was said, by a person who wants that", async (t) => {
  const desk = await Desk.open(t);
  const looks = new Looks();
  const id = await begin(desk, desk.work, "The lamp");
  await say(desk, id, "echo\nthe lighthouse is red");
  const app = await App.open(desk, { viewport });
  await row(app, /The lamp/).click();
  await app.log.getByText("the lighthouse is red").first().waitFor();

  fs.rmSync(path.join(desk.state, "deskhand", "demo-agent"), { recursive: true });
  await desk.api("POST", `/client/sessions/${id}/restart`);
  await app.log.getByText(/^Continued without memory/).waitFor();
  await app.composer.fill("Which colour is it?");
  await app.button("Put a summary of it into the message").click();
  await until("the summary", async () => /^This goes on from a conversation .*lighthouse is red.*Go on from there\.\n\nWhich colour is it\?$/s.test(await app.composer.inputValue()));
  assert.ok(await app.composer.evaluate((field) => field === document.activeElement));
  await looks.at(app.page, "recall");
  await app.page.setViewportSize(small);
  await looks.at(app.page, "recall-small");
  looks.done();
});

test("conversations of an agent's own are imported", async (t) => {
  const desk = Desk.make(t);
  const looks = new Looks();
  const silent = "#!/bin/sh\nwhile read -r line; do id=$(printf '%s' \"$line\" | sed 's/.*\"id\":\\([0-9]*\\).*/\\1/'); " +
    "printf '{\"jsonrpc\":\"2.0\",\"id\":%s,\"result\":{\"protocolVersion\":1,\"agentCapabilities\":{}}}\\n' \"$id\"; done\n";
  desk.agents([
    twin("mate", "Mate"), twin("shy", "Shy", { DESKHAND_DEMO_LOGIN: "agent" }), { id: "plain", name: "Plain", command: desk.script("plain.sh", silent) },
  ]);
  await desk.start();
  const harbour = directory(desk, "harbour");
  for (const [n, cwd] of [desk.work, harbour, harbour].entries()) {
    const id = await begin(desk, cwd, `Before ${n}`);
    await say(desk, id, `echo\nsaid elsewhere ${n}`);
  }
  const app = await App.open(desk, { viewport });
  await app.page.keyboard.press("Control+k");
  await app.page.keyboard.type("import conv");
  await app.page.keyboard.press("Enter");
  await app.page.getByRole("heading", { name: "Import conversations", level: 1 }).waitFor();
  await looks.at(app.page, "import");
  const part = (name) => app.page.getByRole("region", { name });
  for (const name of ["Plain", "Shy", "Demo agent", "Mate"]) await app.button(`List conversations of ${name}`).press("Enter");
  await part("Plain").getByText("Plain does not list its conversations").waitFor();
  await app.button("Log in", part("Shy")).waitFor();
  await until("those that are here", async () => (await part("Demo agent").getByText("Already here").count()) === 3);
  const free = part("Mate").getByRole("listitem");
  await until("the list", async () => (await free.count()) === 3);
  await looks.at(app.page, "import-listed");

  // One directory's, and one of them: it is opened.
  await app.button("Directory: All directories").click();
  await app.page.getByRole("option", { name: /^harbour/ }).click();
  await until("the directory's own", async () => (await free.count()) === 2);
  await part("Mate").getByRole("button", { name: /^Import “/ }).first().press("Enter");
  await app.page.getByText("Imported from Mate", { exact: true }).waitFor();
  await app.log.getByText("said elsewhere").first().waitFor();
  await looks.at(app.page, "imported");
  assert.equal((await desk.session()).origin.kind, "import");

  // The others at once; then all of them are here.
  await app.page.keyboard.press("Control+k");
  await app.page.keyboard.type("import conv");
  await app.page.keyboard.press("Enter");
  await app.button("List conversations of Mate").press("Enter");
  await part("Mate").getByRole("checkbox", { name: "Choose all" }).press("Space");
  await app.button("Import 2 conversations").press("Enter");
  await app.page.getByText("2 conversations imported").waitFor();
  await until("all of them", async () => (await part("Mate").getByText("Already here").count()) === 3);
  await app.page.setViewportSize(small);
  await looks.at(app.page, "import-small");
  await part("Mate").getByRole("button", { name: /^Open “/ }).first().press("Enter");
  await app.page.getByText("Imported from Mate", { exact: true }).waitFor();
  looks.done();
});

test("a turn that runs is steered, where the agent takes that", async (t) => {
  const desk = await Desk.open(t);
  const looks = new Looks();
  const app = await App.open(desk, { agent: "Demo agent", viewport });
  await app.send("slow");
  await app.button("Stop").waitFor();
  await app.composer.fill("echo\nand mind the harbour");
  await app.button("Steer").waitFor();
  assert.equal(await app.button("Interrupt and send").count(), 0);
  await looks.at(app.page, "steer");
  await app.composer.press("Control+Enter");
  await app.log.getByText("and mind the harbour").first().waitFor();
  assert.ok((await desk.session()).turn, "the turn goes on");
  await until("empty composer", async () => (await app.composer.inputValue()) === ""); // the answer may come after the event
  await app.button("Stop").click();
  looks.done();
});
