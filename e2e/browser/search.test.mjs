// What was said is found again: by words, over every conversation, and shown where it was said, however long ago that is.
import assert from "node:assert/strict";
import fs from "node:fs";
import path from "node:path";
import { test } from "node:test";
import { App, Looks } from "./app.mjs";
import { Desk, until } from "./desk.mjs";

const notes = 260;
const early = 12;

/** A prompt of which the demo agent answers with one message: two entries. */
const note = (n) => `echo\nnote ${n}: ${n === early ? "the lighthouse has a *red* door" : "nothing happened at the harbour"}`;

/** Gives a session prompts, one after the other. */
async function say(desk, id, prompts) {
  for (const message of prompts) {
    await desk.api("POST", `/client/sessions/${id}/prompt`, { message });
    await until("the end of the turn", async () => !(await desk.api("GET", `/client/sessions/${id}`)).turn);
  }
}

/** Waits until everything that was said can be found. */
async function indexed(desk) {
  await until("the index", async () => {
    const found = await desk.api("GET", "/client/search?q=note&limit=1");
    return found.items.length > 0 && !found.pending;
  });
}

async function begin(desk, agent, cwd, title) {
  const { id } = await desk.api("POST", "/client/sessions", { agent, cwd });
  await until("the agent", async () => (await desk.api("GET", `/client/sessions/${id}`)).phase === "ready");
  await desk.api("PATCH", `/client/sessions/${id}`, { title });
  return id;
}

class Found {
  constructor(app) {
    this.app = app;
    this.page = app.page;
    this.field = app.page.getByRole("combobox", { name: "Search all conversations" });
    this.hits = app.page.getByRole("listbox", { name: "Results" }).getByRole("option");
    this.chosen = app.page.getByRole("option", { selected: true });
  }

  async open() {
    await this.page.keyboard.press("Control+Shift+F");
    await this.field.waitFor();
    await until("the focus", () => this.field.evaluate((field) => field === document.activeElement));
  }

  focused() {
    return this.page.evaluate(() => document.activeElement?.getAttribute("aria-label"));
  }
}

/** The numbers of the notes that are on the page. */
const mounted = (app) =>
  app.log.locator("[data-row=user]").evaluateAll((rows) => rows.map((row) => Number(/note (\d+)/.exec(row.textContent)?.[1])));

/** Whether a note can be seen. */
const seen = (app, n) =>
  app.log.locator("[data-row=user]").evaluateAll((rows, n) => {
    const frame = document.querySelector("[role=log]").getBoundingClientRect();
    const box = rows.find((row) => new RegExp(`note ${n}:`).test(row.textContent))?.getBoundingClientRect();
    return box !== undefined && box.bottom > frame.top && box.top < frame.bottom;
  }, n);

test("an early place of a long conversation, by keyboard alone", async (t) => {
  const desk = await Desk.open(t);
  const looks = new Looks();
  const id = await begin(desk, "mock", desk.work, "The long one");
  const other = path.join(desk.home, "other");
  fs.mkdirSync(other);
  const short = await begin(desk, "mock", other, "The short one");
  await say(desk, id, Array.from({ length: notes }, (_, n) => note(n + 1)));
  await say(desk, short, ["echo\nnote 1: a lighthouse far away"]);
  await indexed(desk);

  const app = await App.open(desk);
  const found = new Found(app);
  await app.sidebar.getByRole("treeitem", { name: /The long one/ }).click();
  await until("the tail", () => seen(app, notes));
  assert.ok((await mounted(app))[0] > 100, "only the tail is loaded");

  // The results, as one types.
  await found.open();
  await looks.at(app.page, "search-empty");
  await app.page.keyboard.type("Lightho");
  await until("both conversations", async () => (await app.page.getByRole("main").getByRole("group").count()) === 2);
  assert.deepEqual(await app.page.getByRole("main").getByRole("group").evaluateAll((all) => all.map((one) => /The \w+ one/.exec(one.textContent)[0])),
    ["The short one", "The long one"], "the newest first");
  assert.deepEqual([...new Set(await found.hits.locator("mark").allTextContents())], ["lighthouse"]);
  assert.equal(await found.hits.locator("em").count(), 0, "what was said is text");
  const said = (kind) => found.hits.filter({ hasText: kind }).last().innerText();
  assert.match(await said("Answer"), /the lighthouse has a red door/, "an answer is read without its markup");
  assert.match(await said("You"), /the lighthouse has a \*red\* door/, "a message is as it was written");
  await looks.at(app.page, "search");

  // To the entry of the user, the last one of the list.
  const last = (await found.hits.count()) - 1;
  for (let n = 0; n < last; n++) await app.page.keyboard.press("ArrowDown");
  await until("the last result", async () => /You.*note 12/.test(await found.chosen.textContent()));
  const letGo = await app.holds(2_500);
  await app.page.keyboard.press("Enter");
  await until("the place", () => seen(app, early));
  const lit = app.log.locator(".lit");
  assert.match(await lit.textContent(), /note 12: the lighthouse/);
  await looks.at(app.page, "search-place");
  await letGo();
  await until("the end of the mark", async () => (await lit.count()) === 0);
  assert.ok(await seen(app, early), "it stays where it is");
  assert.equal(await found.focused(), "Transcript");
  assert.ok((await mounted(app)).at(-1) < notes, "the tail is not loaded yet");

  // A message that comes meanwhile moves nothing.
  await say(desk, id, [note(notes + 1)]);
  await app.page.getByRole("button", { name: /new$/ }).waitFor();
  assert.ok(await seen(app, early));

  // On to the tail, page by page: nothing is missing on the way, and from there it is followed.
  const met = new Set();
  await until("the tail again", async () => {
    for (const n of await mounted(app)) met.add(n);
    for (let n = 0; n < 5; n++) await app.page.keyboard.press("PageDown");
    return (await seen(app, notes + 1)) && (await app.page.getByRole("button", { name: /new$|Jump to the latest/ }).count()) === 0;
  });
  for (const n of await mounted(app)) met.add(n);
  for (let n = early; n <= notes + 1; n++) assert.ok(met.has(n), `note ${n} was never there`);
  const order = await mounted(app);
  assert.deepEqual(order, [...order].sort((a, b) => a - b));
  await say(desk, id, [note(notes + 2)]);
  await until("the next message", () => seen(app, notes + 2));

  // Back to the results, as they were left; Escape leads to where one was.
  await found.open();
  assert.equal(await found.field.inputValue(), "Lightho");
  assert.match(await found.chosen.textContent(), /You.*note 12/);
  await app.page.keyboard.press("Escape");
  await until("the conversation", () => seen(app, notes + 2));

  // There again, up to the beginning, and back to the tail by the pill.
  await found.open();
  await app.page.keyboard.press("Enter");
  await until("the place", () => seen(app, early));
  await until("the beginning", async () => {
    await app.page.keyboard.press("Home");
    return seen(app, 1);
  });
  await app.button("Jump to the latest").focus();
  await app.page.keyboard.press("Enter");
  await until("the tail", () => seen(app, notes + 2));
  await say(desk, id, [note(notes + 3)]);
  await until("the message after", () => seen(app, notes + 3));
  looks.done();
});

test("filters, more, and conversations that are not in any list", async (t) => {
  const desk = await Desk.open(t);
  const looks = new Looks();
  const id = await begin(desk, "mock", desk.work, "Here");
  const other = path.join(desk.home, "other");
  fs.mkdirSync(other);
  const elsewhere = await begin(desk, "mock", other, "Elsewhere");
  await say(desk, id, Array.from({ length: 60 }, (_, n) => note(n + 1)));
  await say(desk, elsewhere, ["echo\nnote 1: only here"]);
  await desk.api("PATCH", `/client/sessions/${elsewhere}`, { archived: true });
  await indexed(desk);
  const app = await App.open(desk);
  const found = new Found(app);

  // From the sidebar.
  await app.button("Search", app.sidebar).click();
  await found.field.fill("note");
  await app.page.getByText("More than 50 results").waitFor();
  assert.equal(await found.hits.count(), 50);
  await looks.at(app.page, "search-more");
  await app.button("Show more").click();
  await app.page.getByText("61 results").waitFor();
  assert.equal(await found.hits.count(), 61);

  await app.button("Directory: All directories").click();
  await app.page.getByRole("option", { name: /^other/ }).click();
  await app.page.getByText("1 result", { exact: true }).waitFor();
  assert.equal(await app.page.getByRole("main").getByRole("group").count(), 1);
  const today = new Date().toLocaleDateString("sv"); // as a date field has it
  await app.page.getByLabel("From", { exact: true }).fill(today);
  await app.page.getByLabel("To", { exact: true }).fill(today);
  await app.page.getByText("1 result", { exact: true }).waitFor();
  await app.page.getByLabel("From", { exact: true }).fill("");
  await app.page.getByLabel("To", { exact: true }).fill("2020-01-01");
  await app.page.getByText("Nothing found with these filters.").waitFor();
  await looks.at(app.page, "search-filtered");
  assert.equal(await app.button("Directory: other").count(), 1, "a filter keeps its name");
  await app.button("Clear the filters").click();
  await app.page.getByText("More than 50 results").waitFor();

  // Nothing to look for is no failure.
  await found.field.fill("!?");
  await app.page.getByText("Nothing to search for").waitFor();

  // From the palette, to an archived conversation.
  await app.button("Inbox", app.sidebar).click();
  await app.page.keyboard.press("Control+k");
  await app.page.keyboard.type("search all");
  await app.page.keyboard.press("Enter");
  await found.field.fill('"only here"');
  await until("the hits", async () => (await found.hits.count()) === 2);
  await app.page.setViewportSize({ width: 720, height: 480 });
  await looks.at(app.page, "search-small");
  looks.done();
  await found.hits.last().click();
  await app.page.getByRole("heading", { name: "Elsewhere" }).waitFor();
  await app.log.getByText("note 1: only here").first().waitFor();

  // What is folded is open where it was found.
  await say(desk, id, ["thought"]);
  await app.page.keyboard.press("Control+Shift+F");
  await found.field.fill("own words");
  await until("the thought", async () => /^Thought.*own words/.test((await found.chosen.textContent({ timeout: 1000 })).trim()));
  await app.page.keyboard.press("Enter");
  await app.log.getByText("First I repeat the question in my own words.").waitFor();

  // What is said just now is found as soon as it can be, without another key.
  await app.page.keyboard.press("Control+Shift+F");
  await found.field.fill("periwinkle");
  await app.page.getByText("Nothing found.").waitFor();
  await found.page.keyboard.press("Escape");
  await desk.api("POST", `/client/sessions/${id}/prompt`, { message: "echo\nperiwinkle" });
  await until("the entry", async () => (await desk.entries(id)).some((entry) => /periwinkle/.test(entry.text ?? "")));
  await found.open();
  await until("the new entry", async () => (await found.hits.count()) > 0);
});

test("a conversation is saved as a file", async (t) => {
  const desk = await Desk.open(t);
  const app = await App.open(desk, { agent: "Demo agent" });
  await app.turn("echo\nthe lighthouse");
  const { id } = await desk.session();
  await desk.api("PATCH", `/client/sessions/${id}`, { title: "Über das Meer / 海" });
  const row = app.sidebar.getByRole("treeitem", { name: /Meer/ });
  const save = async (act) => {
    const [download] = await Promise.all([app.page.waitForEvent("download"), act()]);
    return { name: download.suggestedFilename(), content: fs.readFileSync(await download.path()) };
  };
  const menu = (name) => async () => {
    await row.focus();
    await app.page.keyboard.press("Shift+F10");
    await app.page.getByRole("menuitem", { name: "Export" }).press("Enter");
    await app.page.getByRole("menuitem", { name, exact: true }).press("Enter");
  };
  const md = await save(menu("Markdown"));
  assert.match(md.name, /^\d{4}-\d\d-\d\d-uber-das-meer-海\.md$/);
  assert.match(String(md.content), /^# Über das Meer \/ 海\n[\s\S]*the lighthouse/);
  const json = JSON.parse(String((await save(menu("JSON"))).content));
  assert.equal(json.session.id, id);
  assert.ok(json.entries.length >= 2);
  await app.holds(5_000);
  const recording = await save(async () => {
    await app.page.keyboard.press("Control+k");
    await app.page.keyboard.type("save a recording");
    await app.page.keyboard.press("Enter");
  });
  assert.match(recording.name, /\.deskhand\.zip$/);
  assert.equal(recording.content.subarray(0, 2).toString(), "PK");
  await app.page.getByText(`Saved as ${recording.name}`).waitFor();
});
