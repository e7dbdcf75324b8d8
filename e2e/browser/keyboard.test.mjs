// The whole story without a mouse: a run that knows nothing but keys, and asks axe about every screen that it comes to. Then the keys
// themselves: the palette, the held switcher, Help, and keys of a person's own.
import assert from "node:assert/strict";
import fs from "node:fs";
import path from "node:path";
import { test } from "node:test";
import { App, Looks, violations } from "./app.mjs";
import { Desk, shoot, until } from "./desk.mjs";

async function wellMade(page, name) {
  assert.deepEqual(await violations(page), [], `axe about ${name}`);
}

/** A person with a keyboard and no mouse: a page whose pointer does nothing. */
class Typist {
  constructor(app) {
    this.app = app;
    this.page = app.page;
    this.keyboard = app.page.keyboard;
  }

  press(...keys) {
    return keys.reduce((before, key) => before.then(() => this.keyboard.press(key)), Promise.resolve());
  }

  type(text) {
    return this.keyboard.type(text);
  }

  async focusOn(what, locator) {
    await until(`the focus on ${what}`, () => locator.evaluate((element) => element.contains(document.activeElement)));
  }

  /** Goes by Tab until something has the focus; what the person sees at each stop has to have a name and a ring. */
  async tabTo(what, locator, key = "Tab") {
    for (let n = 0; n < 120; n++) {
      if (await locator.evaluate((element) => element === document.activeElement).catch(() => false)) return;
      await this.press(key);
      const at = await this.page.evaluate(() => {
        const one = document.activeElement;
        if (!one || one === document.body) return { name: "nothing", seen: true };
        const style = getComputedStyle(one);
        const label = one.getAttribute("aria-label") ?? one.textContent ?? "";
        const named = label.trim() || one.getAttribute("title") || one.getAttribute("aria-labelledby") || one.labels?.length || one.placeholder;
        const shown = one.checkVisibility({ visibilityProperty: true });
        return { name: one.outerHTML.slice(0, 160), seen: shown && Boolean(named), ring: style.outlineStyle !== "none" };
      });
      assert.ok(at.seen, `the focus is on something without a name or out of sight: ${at.name}`);
    }
    assert.fail(`Tab never comes to ${what}`);
  }

  /** A command by its name, from the palette. */
  async command(name) {
    await this.press("Control+k");
    const dialog = this.page.getByRole("dialog", { name: "Commands and conversations" });
    await this.focusOn("the palette", dialog);
    await this.type(`>${name}`);
    await dialog.getByRole("option", { name }).first().waitFor();
    await this.press("Enter");
    await dialog.waitFor({ state: "detached" });
  }
}

async function open(t, options = {}) {
  const desk = await Desk.open(t);
  const app = await App.open(desk, options);
  return { desk, app, person: new Typist(app), page: app.page };
}

const answer = async (person) => {
  const { page } = person;
  await page.getByTestId("request").waitFor();
  await person.press("Control+.");
  await page.getByRole("alertdialog").waitFor();
  await person.app.unguarded();
};

test("the whole story by keyboard alone, and axe about every screen of it", async (t) => {
  const { desk, app, person, page } = await open(t);
  await wellMade(page, "the first start");

  // A conversation in a directory that is typed.
  await person.focusOn("the message", app.composer);
  await until("the focus on the directory", async () => {
    const at = await page.evaluate(() => document.activeElement?.getAttribute("aria-label") ?? "");
    if (!at.startsWith("Directory: ")) await person.press("Shift+Tab");
    return at.startsWith("Directory: ");
  });
  await person.press("ArrowDown");
  await person.press("End");
  await person.press("Enter");
  await person.focusOn("the path", page.getByRole("combobox", { name: "Path" }));
  await person.press("Control+a");
  await person.type(desk.work);
  await person.press("Enter");
  await person.focusOn("the message", app.composer);

  // A message of two lines, an approval, a turn to its end.
  await person.type("Please show me");
  await person.press("Shift+Enter");
  await person.type("around");
  assert.equal(await app.composer.inputValue(), "Please show me\naround");
  await person.press("Enter");
  await answer(person);
  await wellMade(page, "an approval");
  await person.press("1");
  await app.footers.getByText("Done", { exact: true }).waitFor();
  assert.ok(fs.existsSync(path.join(desk.work, "deskhand-demo.md")));
  await wellMade(page, "a conversation");

  // The same prompt again by recall, rejected this time.
  await person.focusOn("the message", app.composer);
  await person.press("ArrowUp");
  assert.equal(await app.composer.inputValue(), "Please show me\naround");
  await person.press("ArrowDown");
  assert.equal(await app.composer.inputValue(), "");
  await person.press("ArrowUp", "Enter");
  await answer(person);
  await person.press("r");
  await until("the second turn's end", async () => (await app.footers.count()) === 2);

  // A form: its fields by Tab, Space and digits.
  await person.focusOn("the message", app.composer);
  await person.type("question");
  await person.press("Enter");
  await answer(person);
  await wellMade(page, "a question");
  await person.press("2", "Enter");
  await app.log.getByText("You answered: option-b").waitFor();
  await until("the third turn's end", async () => (await app.footers.count()) === 3);

  // Mode and model.
  await person.press("Control+m");
  await page.getByRole("button", { name: /^Mode: (?!Ask)/ }).waitFor();
  await person.press("Control+Shift+m");
  const models = page.getByRole("dialog", { name: "Model" });
  await models.getByRole("option", { name: "Demo Small" }).waitFor();
  await wellMade(page, "the models");
  await person.type("small");
  await person.press("Enter");
  await app.button("Model: Demo Small").waitFor();

  // Put away, brought back.
  await person.focusOn("the message", app.composer);
  await person.type("half a thought");
  await person.press("Control+s");
  assert.equal(await app.composer.inputValue(), "");
  await page.getByText("Stashed. Ctrl+S").waitFor();
  await person.press("Control+s");
  await until("the message", async () => (await app.composer.inputValue()) === "half a thought");
  await person.press("Control+a", "Delete");

  // Every screen that a command leads to.
  for (const [keys, name] of [
    ["Alt+i", "Inbox"], ["Alt+a", "Agents"], ["Alt+m", "MCP servers"], ["Alt+s", "Skills"], ["Control+Comma", "Settings"],
  ]) {
    await person.press(keys);
    await page.getByRole("heading", { name, exact: true }).waitFor();
    await wellMade(page, name);
  }
  await person.press("Control+Shift+f");
  await page.getByRole("combobox", { name: "Search all conversations" }).waitFor();
  await wellMade(page, "the search");
  await person.press("Escape");

  // Back to the conversation, and through its regions.
  await person.press("Control+k");
  await person.type("#please");
  await page.getByRole("option", { name: /Please show me/ }).waitFor();
  await person.press("Enter");
  await person.focusOn("the message", app.composer);
  const regions = new Set();
  for (let n = 0; n < 8; n++) {
    await person.press("F6");
    regions.add(await page.evaluate(() => {
      const one = document.activeElement?.closest("[data-region]");
      return one?.getAttribute("aria-label") ?? one?.className ?? "";
    }));
  }
  for (const name of ["Title bar", "Transcript", "Composer"]) assert.ok([...regions].some((one) => one.startsWith(name)), `F6 never comes to ${name}: ${[...regions]}`);

  // What is done with a conversation.
  await person.command("Pin this conversation");
  await until("the pin", async () => (await desk.session()).pinned);
  await app.holds(5_000);
  await person.command("Archive this conversation");
  await page.getByText(/archived/i).first().waitFor();
  await page.getByRole("heading", { name: "New conversation" }).waitFor();
  await person.press("Escape");
  await until("the focus off the field", () => page.evaluate(() => { document.activeElement?.blur(); return true; }));
  await person.press("Control+z");
  await until("the undo", async () => !(await desk.session()).archivedAt);
});

test("Tab goes through a conversation in an order that makes sense, and back", async (t) => {
  const { app, person, page } = await open(t, { agent: "Demo agent" });
  await app.turn("help");
  await person.focusOn("the message", app.composer);
  await person.tabTo("the list of conversations", app.sidebar.locator("[role=treeitem][tabindex='0']"), "Shift+Tab");
  await person.press("End");
  await person.focusOn("the conversation", app.sidebar.getByRole("treeitem", { name: /^help/ }));
  await person.tabTo("the transcript", app.log);
  await person.tabTo("the message", app.composer);
  await person.tabTo("what stops or sends", page.getByRole("button", { name: /^(Send|Mode: )/ }).first());
});

test("the palette: actions, files, conversations, help, and what was used last first", async (t) => {
  const { desk, app, person, page } = await open(t, { agent: "Demo agent" });
  fs.mkdirSync(path.join(desk.work, "deep"));
  fs.writeFileSync(path.join(desk.work, "deep", "needle.txt"), "found\n");
  await app.turn("help");
  const dialog = page.getByRole("dialog", { name: "Commands and conversations" });
  const looks = new Looks();

  await person.press("Control+k");
  await dialog.getByRole("option", { name: /^New conversation/ }).first().waitFor();
  await looks.at(page, "keyboard-palette");
  await person.type(">"); // all of them, the seldom ones too
  for (const name of ["Send the message", "Conversation 1 in the sidebar", "Change keyboard shortcuts", "Side panel: Inspector", "Save this conversation as JSON"])
    await dialog.getByRole("option", { name }).first().waitFor();
  await person.press("Backspace");
  await person.type("@needle");
  await dialog.getByRole("option", { name: "deep/needle.txt" }).waitFor();
  await looks.at(page, "keyboard-palette-files");
  await person.press("Escape");
  await dialog.waitFor({ state: "detached" });
  await person.focusOn("the message", app.composer); // where it was before

  await person.press("Control+p");
  await person.type("needle");
  await dialog.getByRole("option", { name: "deep/needle.txt" }).waitFor();
  await person.press("Enter");
  await page.getByRole("tab", { name: "Files", selected: true }).waitFor();
  await person.press("Alt+2"); // away with it

  await person.press("Control+k");
  await person.type("?first");
  await dialog.getByRole("option", { name: "First conversation" }).waitFor();
  await person.press("Enter");
  const help = page.getByRole("dialog", { name: "Help" });
  await help.getByRole("heading", { level: 1 }).waitFor();
  await looks.at(page, "keyboard-manual");
  await person.press("Escape");

  await person.command("Change keyboard shortcuts");
  await page.getByRole("heading", { name: "Keyboard" }).waitFor();
  await person.press("Control+k");
  assert.match(await dialog.getByRole("option").first().innerText(), /Change keyboard shortcuts/);
  looks.done();
});

test("behind a slash: the agent's commands and Deskhand's own, which are done and never sent", async (t) => {
  const { desk, app, person, page } = await open(t, { agent: "Demo agent" });
  await app.turn("help");
  const looks = new Looks();
  const list = page.getByRole("listbox", { name: "Commands" });
  const of = (name) => list.getByRole("group", { name, exact: true });
  await person.focusOn("the message", app.composer);
  await person.type("/");
  await of("Demo agent").getByRole("option").first().waitFor();
  await of("Deskhand").getByRole("option", { name: "/archive" }).waitFor();
  await wellMade(page, "the list of commands");
  await looks.at(page, "keyboard-slash");
  for (let left = await list.getByRole("option").count(); left > 1; left--) await person.press("ArrowDown");
  await until("the last in view", () => list.getByRole("option").last().evaluate((one) => one.getAttribute("aria-selected") === "true" && one.getBoundingClientRect().bottom <= one.closest("[role=listbox]").getBoundingClientRect().bottom + 1));

  // Done at once, with the rest of the message left as it is.
  const said = async () => (await desk.api("GET", `/client/sessions/${(await desk.session()).id}/entries`)).items.length;
  const before = await said();
  await app.composer.fill("later");
  await person.press("Home");
  await person.type("/pin ");
  await person.press("ArrowLeft");
  await of("Deskhand").getByRole("option", { name: /^\/pin\b/ }).waitFor();
  await person.press("Enter");
  await until("the pin", async () => (await desk.session()).pinned);
  await until("the rest of the message", async () => (await app.composer.inputValue()) === "later");
  assert.equal(await said(), before);

  // A path is no command, and what nobody has goes to the agent.
  await app.composer.fill("");
  await person.type("/etc/hosts");
  assert.equal(await list.count(), 0);
  looks.done();
});

test("the conversations of late while the keys are held, and the nth one", async (t) => {
  const { desk, app, person, page } = await open(t, { agent: "Demo agent" });
  const looks = new Looks();
  for (const name of ["first", "second", "third"]) {
    if (name !== "first") {
      await person.press("Alt+n");
      await page.getByRole("heading", { name: "New conversation" }).waitFor();
      await app.begin("Demo agent", desk.work);
    }
    await app.turn(`help ${name}`);
  }
  const title = (name) => page.getByRole("heading", { name: `help ${name}`, level: 1 });
  const list = page.getByRole("listbox", { name: "Recent conversations" });
  await person.keyboard.down("Alt");
  await person.press("q");
  await list.getByRole("option", { name: "help second", selected: true }).waitFor();
  await looks.at(page, "keyboard-recent");
  await person.press("q");
  await list.getByRole("option", { name: "help first", selected: true }).waitFor();
  await person.keyboard.up("Alt");
  await title("first").waitFor();
  assert.equal(await list.count(), 0);

  // Pressed and let go at once: the one before, as often as one likes.
  await person.press("Alt+q");
  await title("third").waitFor();
  await person.press("Alt+q");
  await title("first").waitFor();
  // Left without a choice.
  await person.keyboard.down("Alt");
  await person.press("q", "Escape");
  await person.keyboard.up("Alt");
  await list.waitFor({ state: "detached" });
  await title("first").waitFor();
  // From the palette nothing is held: Enter chooses.
  await person.command("Recent conversations");
  await list.waitFor();
  await person.press("ArrowDown", "Enter");
  await title("second").waitFor();

  await person.press("Alt+Shift+1");
  await title("third").waitFor();
  await person.press("Alt+Shift+3");
  await title("first").waitFor();
  await person.press("Alt+Shift+9"); // there is none
  await title("first").waitFor();
  looks.done();
});

test("keys of a person's own: recorded, in conflict, reset, and from the file", async (t) => {
  const { desk, app, person, page } = await open(t, { agent: "Demo agent" });
  const file = path.join(desk.config, "deskhand", "keyboard.json");
  const looks = new Looks();
  await person.command("Change keyboard shortcuts");
  const filter = page.getByRole("searchbox", { name: "Find a command or its keys" });
  await filter.waitFor();
  await looks.at(page, "keyboard-settings");
  await filter.focus();
  await person.type("open the inbox");
  const record = page.getByRole("button", { name: "Record keys for: Open the inbox" });
  await person.tabTo("Record", record);
  await person.press("Enter", "x"); // a letter people type
  await page.getByText("People type that. Hold Ctrl, Alt with it.").waitFor();
  await person.press("Enter", "Control+k"); // the palette's
  await page.getByText("Ctrl+K is used by: Commands and conversations.").waitFor();
  await looks.at(page, "keyboard-conflict");
  await person.press("Tab", "Enter"); // not that
  await person.focusOn("Record", record);
  await person.press("Enter", "Control+Shift+x");
  await until("the file", () => JSON.stringify(JSON.parse(fs.readFileSync(file, "utf8"))) === '{"bindings":[{"keys":"Mod+Shift+X","command":"inbox"}]}');
  await until("its keys", () => record.isEnabled()); // the answer, with which they count
  await person.focusOn("Record", record);
  await person.press("Control+Shift+x");
  await page.getByRole("heading", { name: "Inbox" }).waitFor();

  // By hand, while it runs; what does nothing is told by its line, and stays.
  fs.writeFileSync(file, '{"bindings": [\n  {"keys": "Mod+I", "command": null},\n  {"keys": "F9", "command": "help", "note": "as in the old days"},\n  {"keys": "F8", "command": "tomorrow"}\n]}');
  const help = page.getByRole("dialog", { name: "Help" });
  await until("F9", async () => {
    await person.press("F9");
    return help.isVisible();
  });
  await help.getByText("Commands and conversations").waitFor();
  await looks.at(page, "keyboard-help");
  await person.press("Escape");
  await person.press("Control+Comma");
  await person.command("Change keyboard shortcuts");
  await page.getByText("Line 4: there is no command tomorrow.").waitFor();
  await filter.focus();
  await person.type("open the inbox");
  await person.tabTo("Reset", page.getByRole("button", { name: "Reset the keys of: Open the inbox" }));
  await person.press("Enter");
  await until("the file", () => {
    const { bindings } = JSON.parse(fs.readFileSync(file, "utf8"));
    return JSON.stringify(bindings) === '[{"keys":"F8","command":"tomorrow"},{"keys":"F9","command":"help","note":"as in the old days"}]';
  });

  // Broken: told with its line, not written over, and what is there by itself works.
  fs.writeFileSync(file, '{"bindings": [\n oops');
  await page.getByText(/cannot be read and was left as it is: line 2/).waitFor();
  assert.ok(await record.isDisabled());
  await person.press("Alt+F1");
  await help.waitFor();
  await person.press("Escape");
  assert.equal(fs.readFileSync(file, "utf8"), '{"bindings": [\n oops');
  looks.done();
});

test("Enter does what the setting says while a turn runs, and with Ctrl the opposite", async (t) => {
  const { desk, app, person, page } = await open(t, { agent: "Demo agent" });
  await desk.api("PATCH", "/client/settings", { followUp: "now" });
  await app.send("slow");
  await app.button("Stop").waitFor();
  await app.composer.focus();
  await person.type("help later");
  await person.press("Control+Enter"); // the opposite: it waits
  const queue = page.getByRole("region", { name: "Queue" });
  await queue.getByText("help later").waitFor();
  await person.type("help now");
  await person.press("Enter"); // goes at once
  await app.log.getByText("help now").first().waitFor();
});

test("at twice the size everything is still there", async (t) => {
  const { app, person, page } = await open(t, { agent: "Demo agent", viewport: { width: 720, height: 480 } });
  await app.turn("help");
  const fits = () => page.evaluate(() => document.documentElement.scrollWidth <= window.innerWidth);
  for (const [keys, name] of [["Control+k", "palette"], ["Alt+F1", "help"]]) {
    await person.press(keys);
    await page.getByRole("dialog").first().waitFor();
    await shoot(page, `keyboard-small-${name}`);
    assert.ok(await fits(), name);
    await person.press("Escape");
  }
  await person.command("Change keyboard shortcuts");
  await page.getByRole("heading", { name: "Keyboard" }).waitFor();
  await shoot(page, "keyboard-small-settings");
  assert.ok(await fits(), "the settings");
});
