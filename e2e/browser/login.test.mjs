// Logging in to agents, agents of one's own, what an installation takes, what runs, and the settings: by the app alone.
import assert from "node:assert/strict";
import fs from "node:fs";
import path from "node:path";
import { test } from "node:test";
import { App, Looks } from "./app.mjs";
import { Desk, until } from "./desk.mjs";
import { Registry } from "./registry.mjs";

/**
 * An agent that works for those alone who have logged in: with its account, which it waits for until somebody makes the file "go"; in
 * a terminal, where it asks for a name; or by a key in its environment.
 */
const shy = (dir) => `#!/usr/bin/env node
const fs = require("fs");
const mark = ${JSON.stringify(path.join(dir, "logged-in"))}, go = ${JSON.stringify(path.join(dir, "go"))};
if (process.argv.includes("--login")) {
  const { createInterface } = require("readline");
  const ask = createInterface({ input: process.stdin, output: process.stdout });
  console.log("\\x1b[1mShy\\x1b[0m \\x1b[33mlogin\\x1b[0m, " + process.stdout.columns + " columns wide");
  console.log("Read https://shy.example/login first.");
  process.stdout.on("resize", () => process.stdout.write("now " + process.stdout.columns + " wide "));
  ask.question("User: ", (user) => {
    if (user === "") { console.log("\\x1b[31mNobody has no name.\\x1b[0m"); process.exit(3); }
    fs.writeFileSync(mark, user);
    console.log("Hello " + user + ".");
    process.exit(0);
  });
} else require("readline").createInterface({ input: process.stdin }).on("line", (line) => {
  const { id, method, params } = JSON.parse(line);
  const send = (message) => console.log(JSON.stringify({ jsonrpc: "2.0", id, ...message }));
  const known = () => fs.existsSync(mark) || process.env.SHY_KEY === "open sesame";
  const refused = { error: { code: -32000, message: "Authentication required" } };
  if (method === "initialize") send({ result: {
    protocolVersion: 1, agentInfo: { name: "shy", title: "Shy", version: "0.4.0" }, agentCapabilities: { auth: { logout: {} } },
    authMethods: [
      { id: "account", name: "Shy account", description: "For those who pay" },
      { id: "terminal", name: "Log in by name", type: "terminal", args: ["--login"] },
      { id: "key", name: "API key", type: "env_var", link: "https://shy.example/keys", vars: [{ name: "SHY_KEY", label: "Key" }, { name: "SHY_URL", secret: false, optional: true }] },
    ],
  } });
  else if (method === "session/new") send(known() ? { result: { sessionId: "one" } } : refused);
  else if (method === "authenticate") {
    const timer = setInterval(() => {
      if (!fs.existsSync(go)) return;
      clearInterval(timer);
      fs.writeFileSync(mark, "account");
      send({ result: {} });
    }, 50);
  } else if (method === "logout") { fs.rmSync(mark, { force: true }); send({ result: {} }); }
  else if (method === "session/prompt") {
    if (!known()) return send(refused);
    const text = params.prompt.map((block) => block.text).join("");
    console.log(JSON.stringify({ jsonrpc: "2.0", method: "session/update", params: { sessionId: "one", update: { sessionUpdate: "agent_message_chunk", content: { type: "text", text: "You said " + text } } } }));
    send({ result: { stopReason: "end_turn" } });
  } else if (id !== undefined) send({ error: { code: -32601, message: "Method not found" } });
});
`;

/** The parts of the app that this is about. */
class Screen extends App {
  constructor(app) {
    super(app.page, app.desk);
    this.dialog = this.page.getByRole("dialog", { name: "Log in to Shy" });
    this.terminal = this.dialog.getByRole("group", { name: "Login terminal for Shy" });
    this.list = app.statusReport;
  }

  card(name) {
    return this.page.getByRole("listitem", { name, exact: true });
  }

  method(name) {
    return this.dialog.getByRole("button", { name });
  }

  /** What the terminal shows. */
  shows(text) {
    return this.terminal.locator(".xterm-rows").getByText(text).first();
  }

  /** What has the focus, by its words. */
  focused() {
    return this.page.evaluate(() => {
      const at = document.activeElement;
      return at === document.body ? "" : (at.getAttribute("aria-label") ?? at.textContent.trim());
    });
  }
}

/** A desk whose one agent wants a login. */
async function desk(t, env = {}) {
  const made = Desk.make(t, { env: { DESKHAND_KEYRING: "off", ...env } });
  made.agents([{ id: "shy", name: "Shy", command: made.script("shy.js", shy(made.dir)) }]);
  await made.start();
  return made;
}

test("a conversation that an agent refuses leads to its login, and goes on after it", async (t) => {
  const looks = new Looks();
  const made = await desk(t);
  const app = new Screen(await App.open(made, { agent: "Shy" }));
  await app.exit.getByText("it asks to log in first").waitFor();
  await looks.at(app.page, "login-refused");

  await app.button("Log in", app.exit).click();
  await app.method(/^Shy account/).waitFor();
  assert.match(await app.focused(), /^Shy account/);
  await looks.at(app.page, "login-methods");

  // The account: it waits until the person has been in the browser, and can be given up.
  await app.page.keyboard.press("Enter");
  await app.dialog.getByText("Waiting for the login to Shy").waitFor();
  assert.equal(await app.focused(), "Cancel");
  await looks.at(app.page, "login-waiting");
  await app.page.keyboard.press("Enter");
  await app.method(/^Shy account/).waitFor();
  await until("the end of the login", () => !made.processes().some(({ command }) => command.includes("shy.js")));

  await app.method(/^Shy account/).click();
  await app.dialog.getByText("Waiting for the login to Shy").waitFor();
  fs.writeFileSync(path.join(made.dir, "go"), "");
  await app.dialog.getByText("Logged in to Shy").waitFor();
  await looks.at(app.page, "login-done");
  await app.button("Done", app.dialog).click();
  await app.dialog.waitFor({ state: "detached" });
  const footer = await app.turn("hello");
  await footer.waitFor();
  await app.log.getByText("You said hello").waitFor();

  // A login that has run out in the middle of it: the message that was refused is sent again.
  fs.rmSync(path.join(made.dir, "logged-in"));
  await app.turn("once more", "Failed");
  await looks.at(app.page, "login-run-out");
  await app.button("Log in", app.log).click();
  await app.method(/^Shy account/).click();
  await app.dialog.getByText("Logged in to Shy").waitFor();
  await app.page.keyboard.press("Enter");
  await app.log.getByText("You said once more").waitFor();
  await until("no offer any more", async () => (await app.button("Log in", app.log).count()) === 0); // the turn's end comes after its words
  looks.done();
});

test("a login in a terminal is answered there, by keyboard alone", async (t) => {
  const looks = new Looks();
  const made = await desk(t);
  const app = new Screen(await App.open(made));
  await app.page.context().grantPermissions(["clipboard-read", "clipboard-write"]);
  await app.page.keyboard.press("Alt+a");
  const card = app.card("Shy");
  await app.button("Log in…", card).focus();
  await app.page.keyboard.press("Enter");
  await app.method(/^Shy account/).waitFor();
  await app.page.keyboard.press("Tab");
  await app.page.keyboard.press("Enter");

  await app.shows("Shy login").waitFor();
  await app.shows("User:").waitFor();
  // The program has the size that is seen, and gets another one with the window.
  // One that starts slowly has it from the beginning, and is told nothing new.
  const columns = async () => Number(/.*\b(\d+) (?:columns )?wide/s.exec(await app.terminal.locator(".xterm-rows").textContent())?.[1] ?? 80);
  await until("the size", async () => (await columns()) > 90);
  await app.page.setViewportSize({ width: 720, height: 480 });
  await until("the small size", async () => (await columns()) < 90);
  await looks.at(app.page, "login-terminal-small");
  await app.page.setViewportSize({ width: 1280, height: 800 });
  await until("the size again", async () => (await columns()) > 90);
  await looks.at(app.page, "login-terminal");

  // Keys of the app, and Escape and Tab, are the program's; one combination leads out, and what stands behind is reached.
  await app.page.keyboard.press("Control+b");
  await app.page.keyboard.press("Tab");
  await app.page.keyboard.press("Backspace");
  await app.page.keyboard.press("Escape");
  assert.equal(await app.focused(), "Login terminal for Shy");
  await app.page.keyboard.press("Control+Escape");
  assert.equal(await app.focused(), "Cancel");
  await app.page.keyboard.press("Enter");
  await app.method(/^Log in by name/).waitFor();
  await until("the end of the program", () => !made.processes().some(({ command }) => command.includes("--login")));

  // One that ends badly says so, with what the program wrote left to read.
  await app.method(/^Log in by name/).click();
  await app.shows("User:").waitFor();
  await app.page.keyboard.press("Enter");
  await app.shows("Nobody has no name.").waitFor();
  await app.dialog.getByText("Not logged in to Shy").waitFor();
  await app.terminal.getByText("The program has ended with exit code 3.").waitFor();
  await looks.at(app.page, "login-terminal-failed");
  await app.button("Try again", app.dialog).click();

  // Paste, in one go and with signs of other languages; then the end.
  await app.method(/^Log in by name/).click();
  await app.shows("User:").waitFor();
  await app.page.evaluate(() => navigator.clipboard.writeText("Zoë"));
  await app.button("Paste", app.terminal).click();
  await app.shows("Zoë").waitFor();
  await app.page.keyboard.press("Enter");
  await app.dialog.getByText("Logged in to Shy").waitFor();
  assert.equal(fs.readFileSync(path.join(made.dir, "logged-in"), "utf8"), "Zoë");
  assert.equal(await app.focused(), "Done");
  await app.page.keyboard.press("Enter");

  // And out again.
  await app.button("Log in…", card).click();
  await app.button("Log out", app.dialog).click();
  await app.dialog.getByText("Logged out of Shy").waitFor();
  assert.equal(fs.existsSync(path.join(made.dir, "logged-in")), false);
  await app.page.keyboard.press("Escape");
  await app.dialog.waitFor({ state: "detached" });
  looks.done();
});

test("a key is entered, kept in a file where there is no keyring, and given to the agent", async (t) => {
  const looks = new Looks();
  const made = await desk(t);
  const app = new Screen(await App.open(made, { agent: "Shy" }));
  await app.button("Log in", app.exit).click();
  await app.method(/^API key/).click();
  await app.dialog.getByText(/What you enter is kept as plain text in/).waitFor();
  const key = app.dialog.getByLabel("Key", { exact: true });
  assert.equal(await key.getAttribute("type"), "password");
  await app.page.keyboard.press("Enter");
  await app.dialog.getByText("This is needed.").waitFor();
  assert.equal(await key.evaluate((element) => element === document.activeElement), true);
  await app.page.keyboard.type("open sesame");
  await looks.at(app.page, "login-key");
  await app.page.keyboard.press("Enter");
  await app.dialog.getByText("Logged in to Shy").waitFor();
  await looks.at(app.page, "login-key-done");
  await app.page.keyboard.press("Enter");
  await app.turn("hello");
  await app.log.getByText("You said hello").waitFor();
  assert.doesNotMatch(await app.page.content(), /open sesame/);
  looks.done();
});

test("an agent of one's own is written, tested, saved, changed and deleted", async (t) => {
  const looks = new Looks();
  const made = await desk(t);
  const app = new Screen(await App.open(made));
  await app.page.keyboard.press("Alt+a");
  await app.button("Add an agent").click();
  const form = app.page.getByRole("dialog", { name: "Add an agent" });
  await form.waitFor();
  assert.equal(await form.getByLabel("Name", { exact: true }).evaluate((element) => element === document.activeElement), true);
  await app.page.keyboard.type("My Agent");
  assert.equal(await form.getByLabel("ID", { exact: true }).inputValue(), "my-agent");
  for (let times = 0; times < 3; times++) await app.page.keyboard.press("Escape"); // the second is the browser's own, where it is let
  assert.equal(await form.getByLabel("Name", { exact: true }).inputValue(), "My Agent");
  await app.button("Save", form).click();
  await form.getByText("This is needed.").waitFor();
  await looks.at(app.page, "custom-faults");

  await form.getByLabel("Command").fill("node");
  for (const word of [path.join(made.dir, "shy.js"), "a b"]) {
    await app.button("Add an argument", form).click();
    await app.page.keyboard.type(word);
  }
  await app.button("Add a variable", form).click();
  await app.page.keyboard.type("SHY_KEY");
  assert.equal(await form.getByRole("checkbox", { name: "Secret" }).isChecked(), true);
  const value = form.getByLabel("value of SHY_KEY", { exact: true });
  await value.fill("open sesame");
  assert.equal(await value.getAttribute("type"), "password");
  await looks.at(app.page, "custom-form");
  await app.button("Test", form).click();
  const report = form.getByRole("region", { name: /^Test of/ });
  await report.getByText("It works").waitFor();
  await looks.at(app.page, "custom-test");
  await app.button("Save", form).click();
  await form.waitFor({ state: "detached" });
  const card = app.card("My Agent");
  await card.getByText("Ready", { exact: true }).waitFor();
  const file = path.join(made.config, "deskhand", "agents.json");
  const entry = () => JSON.parse(fs.readFileSync(file, "utf8")).agents.find(({ id }) => id === "my-agent");
  assert.deepEqual(entry(), { id: "my-agent", name: "My Agent", command: "node", args: [path.join(made.dir, "shy.js"), "a b"], env: { SHY_KEY: "open sesame" } });

  // A value that is kept is not shown, and stays when something else is changed.
  await app.button("Edit", card).click();
  const edit = app.page.getByRole("dialog", { name: "Edit My Agent" });
  await edit.getByLabel("Name", { exact: true }).fill("Mine");
  assert.equal(await edit.getByLabel("value of SHY_KEY", { exact: true }).inputValue(), "••••");
  await app.button("Remove argument 2", edit).click();
  await app.button("Save", edit).click();
  await app.card("Mine").waitFor();
  assert.deepEqual(entry(), { id: "my-agent", name: "Mine", command: "node", args: [path.join(made.dir, "shy.js")], env: { SHY_KEY: "open sesame" } });

  await app.button("Edit", app.card("Mine")).click();
  const untouched = app.page.getByRole("dialog", { name: "Edit Mine" });
  await untouched.getByLabel("Name", { exact: true }).waitFor();
  await app.page.keyboard.press("Escape");
  await untouched.waitFor({ state: "detached" });
  await app.button("Edit", app.card("Mine")).click();
  const last = app.page.getByRole("dialog", { name: "Edit Mine" });
  await app.button("Delete", last).click();
  assert.equal(await app.focused(), "Keep");
  await looks.at(app.page, "custom-delete");
  await app.button("Delete", last).click();
  await app.card("Mine").waitFor({ state: "detached" });
  assert.equal(entry(), undefined);

  // A file that cannot be read is said, and not written.
  fs.writeFileSync(file, '{"agents": [\n');
  await app.button("Look again").click();
  await app.page.getByText(/^agents\.json cannot be read:/).waitFor();
  assert.equal(await app.button("Add an agent").isDisabled(), true);
  await looks.at(app.page, "custom-broken-file");
  looks.done();
});

test("what is big is asked about before it is installed", async (t) => {
  const looks = new Looks();
  const registry = await Registry.open(t);
  const claude = "@agentclientprotocol/claude-agent-acp";
  registry.publish(claude, "0.101.0", "claude-agent-acp", shy("/nowhere"), 1 << 20);
  const made = await Desk.open(t, { env: { npm_config_registry: registry.url } });
  const app = new Screen(await App.open(made));
  await app.page.keyboard.press("Alt+a");
  const card = app.card("Claude Code");
  // Nobody wants to fetch 314 MB here, or fill a disk: the plan is the server's own, with other numbers.
  let numbers = { unpacked: 314 << 20, enough: true };
  await app.page.route("**/client/agents/claude/plan", async (route) => {
    const answer = await route.fetch();
    assert.equal(answer.status(), 200, await answer.text());
    await route.fulfill({ response: answer, json: { ...(await answer.json()), ...numbers } });
  });
  await app.button("Install", card).click();
  await card.getByText(/Claude Code 0\.101\.0 is large: .*314\.0 MB on disk\. .* are free\./).waitFor();
  assert.equal(await app.focused(), "Not now");
  await looks.at(app.page, "install-big");
  await app.page.keyboard.press("Escape");
  await app.button("Install", card).waitFor();
  assert.equal((await made.api("GET", "/client/agents")).items.find(({ id }) => id === "claude").state, "not_found");

  numbers = { unpacked: 314 << 20, freeBytes: 20 << 20, enough: false };
  await app.button("Install", card).click();
  await card.getByText(/There is no room for Claude Code 0\.101\.0: it takes 314\.0 MB, and 20\.0 MB are free\./).waitFor();
  assert.equal(await app.button("Install it", card).count(), 0);
  await looks.at(app.page, "install-no-room");
  await app.button("Close", card).click();

  await app.page.unroute("**/client/agents/claude/plan");
  await app.button("Install", card).click();
  await card.getByText("Ready", { exact: true }).waitFor();
  looks.done();
});

test("the status tells what runs, and the settings how much it may take", async (t) => {
  const looks = new Looks();
  const made = await desk(t, { DESKHAND_LEAST_IDLE: "2s" });
  const app = new Screen(await App.open(made, { agent: "Demo agent" }));
  await app.turn("help");
  await app.button("Status and memory", app.status).click();
  await app.statusReport.getByText(/MB \+ agents .*MB$/).waitFor();
  await app.statusReport.getByText(new URL(made.url).host, { exact: true }).waitFor();
  const row = app.list.getByRole("row", { name: /^Processes of Demo agent/ });
  await row.getByText(/^[\d.]+ MB$/).first().waitFor();
  await row.getByText(/^[\d.]+%$/).waitFor();
  await app.button("Processes of Demo agent: 1", app.list).click();
  await looks.at(app.page, "status-processes");
  await app.page.keyboard.press("Escape");
  await app.list.waitFor({ state: "detached" });
  assert.match(await app.focused(), /Status and memory/);

  await app.settingsOf("General");
  const amount = app.page.getByLabel("Memory limit in MB");
  await amount.fill("nothing");
  await amount.press("Enter");
  await app.page.getByText(/^Enter a whole number from 1/).waitFor();
  await looks.at(app.page, "settings-wrong");
  await amount.fill("2048");
  await amount.press("Enter");
  await app.page.getByText("Saved", { exact: true }).first().waitFor(); // and not another part's
  const settings = path.join(made.config, "deskhand", "settings.json");
  assert.equal(JSON.parse(fs.readFileSync(settings, "utf8")).memoryBudgetMiB, 2048);
  await looks.at(app.page, "settings");
  await app.page.getByRole("radio", { name: "No limit" }).check();
  await until("the setting", () => JSON.parse(fs.readFileSync(settings, "utf8")).memoryBudgetMiB === 0);

  // Where the registry is.
  await app.settingsOf("Agents");
  const registry = app.page.getByLabel("Registry address");
  await registry.fill("ftp://mirror.example/registry.json");
  await registry.press("Enter");
  await app.page.getByRole("alert").getByText(/starts with http/).waitFor();
  await registry.fill("https://mirror.example/registry.json");
  await app.button("Save", app.page.locator("form").filter({ has: registry })).click();
  await until("the address", () => JSON.parse(fs.readFileSync(settings, "utf8")).catalogueUrl === "https://mirror.example/registry.json");
  await looks.at(app.page, "settings-registry");

  // An agent that is put to sleep: the budget is less than it takes, and nothing is lost.
  await made.api("PATCH", "/client/settings", { memoryBudgetMiB: 1 });
  await until("the rest", async () => (await made.session()).hibernated === true); // the processes are looked at every ten seconds
  await app.sidebar.getByRole("treeitem", { name: /asleep/ }).click();
  await app.log.getByText(/was put to sleep to save memory/).waitFor();
  await looks.at(app.page, "hibernated");
  await app.turn("help");
  looks.done();
});
