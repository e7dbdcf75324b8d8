// The Agents screen: agents are tested, installed from a registry on loopback, updated, taken back and removed, in the window alone.
import assert from "node:assert/strict";
import { test } from "node:test";
import { App, Looks } from "./app.mjs";
import { Desk, until } from "./desk.mjs";
import { Registry } from "./registry.mjs";

/** A program that speaks as much ACP as a test of an agent asks for; behave is code that may answer first. */
const program = (name, version, behave = "") => `#!/usr/bin/env node
require("readline").createInterface({ input: process.stdin }).on("line", (line) => {
  const { id, method } = JSON.parse(line);
  const send = (message) => console.log(JSON.stringify({ jsonrpc: "2.0", id, ...message }));
  ${behave}
  if (method === "initialize") send({ result: {
    protocolVersion: 1, agentInfo: { name: "${name}", title: "${name}", version: "${version}" },
    agentCapabilities: { loadSession: true, promptCapabilities: { image: true, embeddedContext: true, audio: false }, mcpCapabilities: { http: true } },
    authMethods: [{ id: "account", name: "Log in with an account", description: "Opens the browser" }],
  } });
  if (method === "session/new") send({ result: { sessionId: "one" } });
});
`;
/** Has turns that end when they are stopped. */
const works = `
  if (method === "session/prompt") { global.turn = id; return console.log(JSON.stringify({ jsonrpc: "2.0", method: "session/update", params: { sessionId: "one", update: { sessionUpdate: "agent_message_chunk", content: { type: "text", text: "I am at it." } } } })); }
  if (method === "session/cancel") return console.log(JSON.stringify({ jsonrpc: "2.0", id: global.turn, result: { stopReason: "cancelled" } }));`;
const wantsLogin = `if (method === "session/new") return send({ error: { code: -32000, message: "Authentication required" } });`;

const claude = "@agentclientprotocol/claude-agent-acp";
const codex = "@agentclientprotocol/codex-acp";

/** The screen as a person sees it. */
class Screen extends App {
  constructor(app) {
    super(app.page, app.desk);
    this.heading = this.page.getByRole("heading", { name: "Agents", exact: true });
  }

  card(name) {
    return this.page.getByRole("listitem", { name, exact: true });
  }

  report(name) {
    return this.page.getByRole("region", { name: `Test of ${name}` });
  }

  /** Tests an agent and gives its report. */
  async test(name) {
    await this.button("Test", this.card(name)).click();
    await this.report(name).waitFor();
    return this.report(name);
  }

  /** Waits for the state of an agent. */
  async state(name, state) {
    await this.card(name).getByText(state, { exact: true }).waitFor();
  }
}

test("agents are tested, and the report says what is wrong", async (t) => {
  const looks = new Looks();
  const desk = Desk.make(t);
  desk.agents([
    { id: "sound", name: "Sound", command: desk.script("sound.js", program("sound", "1.2.3")) },
    { id: "shy", name: "Shy", command: desk.script("shy.js", program("shy", "0.4.0", wantsLogin)) },
    { id: "sick", name: "Sick", command: desk.script("sick.sh", "#!/bin/sh\necho 'cannot find the licence' >&2\necho 'giving up' >&2\nexit 3\n") },
    { id: "lost", name: "Lost", command: "/nowhere/lost-agent" },
  ]);
  await desk.start();
  const app = new Screen(await App.open(desk));
  await app.page.context().grantPermissions(["clipboard-read", "clipboard-write"]);
  await app.page.keyboard.press("Alt+a");
  await app.heading.waitFor();
  await looks.at(app.page, "agents");

  const sound = await app.test("Sound");
  await sound.getByText("It works").waitFor();
  for (const step of ["resolve", "spawn", "initialize", "session"]) await sound.getByText(step, { exact: true }).waitFor();
  await sound.getByText("image, embedded context").waitFor();
  await looks.at(app.page, "agents-test-ready");
  await app.holds(1_500);
  await app.button("Copy report", sound).click();
  await app.button("Copied", sound).waitFor();
  const copied = await app.page.evaluate(() => navigator.clipboard.readText());
  assert.match(copied, /^Sound \(sound\): It works\n/);
  assert.match(copied, /- session: done, \d/);
  await app.button("Close the report", sound).click();
  assert.equal(await sound.count(), 0);

  const sick = await app.test("Sick");
  await sick.getByText("It did not start").waitFor();
  await sick.getByText("cannot find the licence").waitFor();
  await sick.getByText("Sick ended with exit code 3.").waitFor();
  await sick.getByText("not reached").first().waitFor();
  await app.state("Sick", "Broken");
  await looks.at(app.page, "agents-test-broken");
  await app.button("Close the report", sick).click();

  const shy = await app.test("Shy");
  await shy.getByText("It starts, and asks to log in first").waitFor();
  await shy.getByText("Log in with an account").waitFor();
  await app.state("Shy", "Needs login");
  await looks.at(app.page, "agents-test-login");
  await app.button("Close the report", shy).click();

  const demo = await app.test("Demo agent");
  await demo.getByText("It works").waitFor();
  await app.button("Look again").click();
  await app.state("Demo agent", "Ready");
  looks.done();
});

test("a test that takes long can be ended, and leaves nothing", async (t) => {
  const desk = Desk.make(t);
  desk.agents([{ id: "mute", name: "Mute", command: desk.script("mute.sh", "#!/bin/sh\nwhile read -r line; do :; done\n") }]);
  await desk.start();
  const app = new Screen(await App.open(desk));
  await app.settingsOf("Agents");
  await app.button("Test", app.card("Mute")).click();
  await until("the agent", () => desk.processes().some(({ command }) => command.includes("mute.sh")));
  await app.button("Stop the test", app.card("Mute")).click();
  await app.button("Test", app.card("Mute")).waitFor();
  assert.equal(await app.report("Mute").count(), 0);
  await until("the end of the agent", () => !desk.processes().some(({ command }) => command.includes("mute.sh")));
});

test("an agent is installed, updated, taken back and removed", async (t) => {
  const looks = new Looks();
  const registry = await Registry.open(t);
  registry.publish(claude, "0.99.0", "claude-agent-acp", program("claude-agent-acp", "0.99.0"));
  registry.publish(claude, "0.101.0", "claude-agent-acp", program("claude-agent-acp", "0.101.0"), 3 << 20);
  const desk = await Desk.open(t, { env: { npm_config_registry: registry.url } });
  const app = new Screen(await App.open(desk));
  const card = app.card("Claude Code");

  // From the start screen to the agent that is missing.
  await app.choose("Agent", /^More agents/);
  await card.getByText(`npm ${claude} 0.101.0`).waitFor();
  await looks.at(app.page, "agents-missing");

  // The installation runs, is seen after a reload too, and is cancelled.
  registry.hold(claude);
  await app.button("Install", card).press("Enter");
  const bar = card.getByRole("progressbar", { name: "Installing Claude Code" });
  await bar.waitFor();
  await card.locator("[aria-current=step]").getByText("Download").waitFor();
  await card.getByText(/^\d\.\d MB of about 3\.\d MB$/).waitFor();
  await card.getByText(/^npm http /).waitFor();
  await looks.at(app.page, "agents-installing");
  await app.page.reload();
  await app.settingsOf("Agents");
  await bar.waitFor();
  await app.button("Cancel", card).click();
  await app.state("Claude Code", "Not found");
  await bar.waitFor({ state: "detached" });
  registry.release(claude);

  // An older version first, so that there is an update.
  await desk.api("POST", "/client/agents/claude/install", { version: "0.99.0" });
  await app.state("Claude Code", "Ready");
  await card.getByText("0.101.0 is available").waitFor();
  await looks.at(app.page, "agents-update");
  await app.button("Update to 0.101.0", card).click();
  await card.getByText("0.101.0", { exact: true }).waitFor();
  await app.button("Roll back to 0.99.0", card).waitFor();
  assert.equal(await card.getByText("is available").count(), 0);
  const report = await app.test("Claude Code");
  await report.getByText("It works").waitFor();
  await app.button("Roll back to 0.99.0", card).click();
  await card.getByText("0.99.0", { exact: true }).waitFor();

  // Removing asks on the card itself.
  await app.button("Remove", card).click();
  await card.getByText(/^Remove Claude Code 0\.99\.0\?/).waitFor();
  assert.equal(await app.page.evaluate(() => document.activeElement?.textContent), "Keep");
  await looks.at(app.page, "agents-remove");
  await app.page.keyboard.press("Escape");
  assert.equal(await card.getByText(/^Remove Claude Code/).count(), 0);
  await app.button("Remove", card).click();
  await app.button("Remove", card).click();
  await app.state("Claude Code", "Not found");
  await app.button("Install", card).waitFor();
  looks.done();
});

test("an update that is offered during a turn is a badge, and nothing else", async (t) => {
  const registry = await Registry.open(t);
  registry.publish(claude, "0.99.0", "claude-agent-acp", program("claude-agent-acp", "0.99.0", works));
  registry.publish(claude, "0.101.0", "claude-agent-acp", program("claude-agent-acp", "0.101.0", works));
  const desk = await Desk.open(t, { env: { npm_config_registry: registry.url } });
  const app = new Screen(await App.open(desk));
  const { page, composer, sidebar, log, footers } = app;
  const claudes = async () => (await desk.api("GET", "/client/agents")).items.find((one) => one.id === "claude");
  const install = async (version) => {
    await desk.api("POST", "/client/agents/claude/install", { version });
    await until(`version ${version}`, async () => { const one = await claudes(); return one.version === version && !one.installing; });
  };
  await install("0.101.0"); // the newest: nothing is offered
  const entry = sidebar.getByRole("button", { name: /^Settings/ });
  assert.doesNotMatch(await entry.innerText(), /\d/);
  const { id } = await desk.api("POST", "/client/sessions", { agent: "claude", cwd: desk.work, title: "A long turn" });
  await sidebar.getByRole("treeitem", { name: /^A long turn/ }).click();
  await composer.fill("work");
  await composer.press("Enter");
  await log.getByText("I am at it.").waitFor();
  await composer.fill("half a sentence");

  await install("0.99.0"); // now a newer version is available
  await entry.getByText("1 update", { exact: true }).waitFor();
  for (const loud of ["dialog", "alertdialog", "alert"]) assert.equal(await page.getByRole(loud).count(), 0, loud);
  assert.equal(await page.locator(".toast").count(), 0);
  assert.equal(await composer.inputValue(), "half a sentence");
  assert.ok(await composer.evaluate((field) => field === document.activeElement), "it took the focus");
  const now = await desk.api("GET", `/client/sessions/${id}`);
  assert.equal(now.phase, "working", "the turn was touched");

  // The entry leads to the card with the offer, and nothing was begun.
  await entry.click();
  await page.getByRole("listitem", { name: "Claude Code", exact: true }).getByText("0.101.0 is available").waitFor();
  assert.equal((await claudes()).version, "0.99.0");
  await sidebar.getByRole("treeitem", { name: /^A long turn/ }).click();
  await app.button("Stop").click();
  await footers.first().getByText("Stopped", { exact: false }).waitFor();
});

test("an installation that fails says why, and can be tried again", async (t) => {
  const looks = new Looks();
  const registry = await Registry.open(t);
  registry.publish(codex, "2.6.0", "codex-acp", "#!/usr/bin/env node\nconsole.error('codex: this machine has no keyring');\nprocess.exit(7);\n");
  const desk = await Desk.open(t, { env: { npm_config_registry: registry.url } });
  const app = new Screen(await App.open(desk));
  await app.page.context().grantPermissions(["clipboard-read", "clipboard-write"]);
  await app.choose("Agent", /^More agents/);

  const bad = app.card("Codex");
  await app.button("Install", bad).click();
  const failure = bad.getByRole("alert");
  await failure.getByText("Installation failed").waitFor();
  await failure.getByText("codex: this machine has no keyring").waitFor();
  await app.button("Copy the error output", failure).click();
  assert.match(await app.page.evaluate(() => navigator.clipboard.readText()), /no keyring/);

  // npm's own words, when npm fails.
  const none = app.card("Claude Code");
  await app.button("Install", none).click();
  await none.getByRole("alert").getByText(/404/).first().waitFor();
  await none.scrollIntoViewIfNeeded();
  await looks.at(app.page, "agents-failed");

  registry.publish(claude, "0.101.0", "claude-agent-acp", program("claude-agent-acp", "0.101.0"));
  await app.button("Install again", none).click();
  await app.state("Claude Code", "Ready");
  assert.equal(await none.getByRole("alert").count(), 0);
  looks.done();
});

test("the rest of the catalogue is asked for, and the screen fits a small window", async (t) => {
  const looks = new Looks();
  const desk = await Desk.open(t);
  const app = new Screen(await App.open(desk));
  await app.settingsOf("Agents");
  await app.heading.waitFor();
  assert.equal(await app.card("Cline").count(), 0);
  // A list that cannot be read says so, and is read on the next request.
  await app.page.route("**/client/agents?all=true", (route) => route.abort());
  await app.button("More agents").click();
  await app.page.getByRole("alert").getByText("Deskhand does not answer.").waitFor();
  await looks.at(app.page, "agents-more-failed");
  await app.page.unroute("**/client/agents?all=true");
  await app.button("Fewer agents").click();
  await app.button("More agents").click();
  await app.card("Cline").waitFor();
  await app.card("Cline").scrollIntoViewIfNeeded();
  await looks.at(app.page, "agents-more");
  await app.page.setViewportSize({ width: 720, height: 480 });
  await looks.at(app.page, "agents-small");
  const wide = await app.page.evaluate(() => document.documentElement.scrollWidth > innerWidth);
  assert.equal(wide, false);
  looks.done();
});
