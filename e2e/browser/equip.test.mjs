// MCP servers and skills of a directory: they are added, tested, fetched and approved in the window, and changes of other programs are
// shown before anything starts.
import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import fs from "node:fs";
import path from "node:path";
import { test } from "node:test";
import { App, Looks } from "./app.mjs";
import { Desk, until } from "./desk.mjs";

/** An MCP server over stdio; before runs first. */
const server = (before = "") => `#!/usr/bin/env node
${before}
require("readline").createInterface({ input: process.stdin }).on("line", (line) => {
  const { id, method, params } = JSON.parse(line);
  const send = (result) => console.log(JSON.stringify({ jsonrpc: "2.0", id, result }));
  if (method === "initialize") send({ protocolVersion: params.protocolVersion, capabilities: { tools: {} }, serverInfo: { name: "weather", version: "1.2.3" } });
  else if (method === "tools/list") send({ tools: [
    { name: "forecast", description: "Tells what the weather will be like in a place.", inputSchema: { type: "object" } },
    { name: "history", description: "Tells what it was like.", inputSchema: { type: "object" } },
  ] });
  else if (id !== undefined) send({});
});
`;

/** The demo agent tells of Deskhand's own MCP server, and of no other. */
async function onlyOurs(app) {
  await app.log.getByText("Tools of deskhand:", { exact: true }).last().waitFor();
  assert.equal(await app.log.getByText(/^Tools of /).count(), 1);
}

/** The screens as a person sees them. */
class Screen extends App {
  static async show(desk, what = "MCP servers", options) {
    const screen = new Screen((await App.open(desk, options)).page, desk);
    await screen.settingsOf(what);
    await screen.page.getByRole("heading", { name: what, exact: true }).waitFor();
    const directory = screen.page.getByRole("textbox", { name: "Directory" });
    await directory.fill(desk.work);
    await directory.press("Enter");
    return screen;
  }

  row(name) {
    return this.page.getByRole("main").getByRole("listitem", { name, exact: true });
  }

  field(name, within = this.page) {
    return within.getByRole("textbox", { name, exact: true });
  }
}

const file = (desk, kind) => path.join(desk.work, ".sandbox-agent", "config", `${kind}.json`);

function write(desk, kind, entries) {
  fs.mkdirSync(path.dirname(file(desk, kind)), { recursive: true });
  fs.writeFileSync(file(desk, kind), JSON.stringify(entries, null, 2));
}

const read = (desk, kind) => JSON.parse(fs.readFileSync(file(desk, kind), "utf8"));

test("an MCP server is added, tested, changed, switched off and removed", async (t) => {
  const looks = new Looks();
  const desk = await Desk.open(t);
  const weather = desk.script("weather.js", server('console.error("reading the stations of " + process.env.KEY.length);'));
  const app = await Screen.show(desk);
  await app.page.getByText("No MCP servers in this directory.").waitFor();
  await looks.at(app.page, "mcp-empty");

  await app.button("Add server").click();
  await app.field("Name").fill("weather");
  await app.button("Save").click();
  await app.page.getByText("command: A program is needed.").waitFor();
  await app.field("Program").fill(weather);
  await app.button("Add argument").click();
  await app.field("Argument 1").fill("--all the stations");
  await app.button("Add variable").click();
  await app.field("Variable").fill("KEY");
  await app.page.getByLabel("Value of KEY", { exact: true }).fill("s3cret");
  const json = app.field("JSON");
  assert.deepEqual(JSON.parse(await json.inputValue()), { type: "local", command: weather, args: ["--all the stations"], env: { KEY: "••••" } });
  await app.button("Show what was typed").click();
  assert.match(await json.inputValue(), /s3cret/);
  await app.button("Hide secrets").click();

  await app.button("Test").click();
  const result = app.page.getByRole("region", { name: /^Test of/ });
  await result.getByText("2 tools").waitFor();
  await result.getByText("forecast").waitFor();
  await result.getByText("weather 1.2.3").waitFor();
  await result.getByText("reading the stations of 6").waitFor();
  await looks.at(app.page, "mcp-editor");

  // JSON that is typed appears in the form, and an error has its line.
  await json.fill((await json.inputValue()).replace('"--all the stations"', '"--some"'));
  assert.equal(await app.field("Argument 1").inputValue(), "--some");
  const good = await json.inputValue();
  await json.fill(good.replace('"args"', "args"));
  await app.page.getByText("A name in double quotes belongs here, not args").waitFor();
  assert.ok(await app.field("Program").isDisabled());
  await looks.at(app.page, "mcp-editor-fault");
  await app.button("Line 4").click();
  await json.fill(good);
  await app.button("Save").click();
  await app.row("weather").getByText("Approved", { exact: true }).waitFor();
  assert.deepEqual(read(desk, "mcp"), { weather: { type: "local", command: weather, args: ["--some"], env: { KEY: "s3cret" } } });

  // The secret that is stored is not shown, and is kept by a change of something else.
  await app.button("Edit", app.row("weather")).click();
  assert.doesNotMatch(await json.inputValue(), /s3cret/);
  assert.equal(await app.page.getByLabel("Value of KEY", { exact: true }).inputValue(), "");
  await app.field("Time limit, in milliseconds").fill("9000");
  await app.button("Save").click();
  await app.row("weather").waitFor();
  assert.deepEqual(read(desk, "mcp").weather, { type: "local", command: weather, args: ["--some"], env: { KEY: "s3cret" }, timeoutMs: 9000 });

  await app.button("Test", app.row("weather")).click();
  await app.row("weather").getByText("Tells what it was like.").waitFor();
  await looks.at(app.page, "mcp-tested");
  await app.button("Close the result").click();

  // An agent gets the server, and no longer gets the server after it was switched off.
  const on = app.page.getByRole("switch", { name: "Give weather to agents" });
  await app.button("New conversation", app.sidebar).click();
  await app.begin("Demo agent", desk.work);
  await app.turn("mcp");
  await app.log.getByText("forecast").first().waitFor();
  await app.settingsOf("MCP servers");
  await on.click();
  await app.row("weather").getByText("Off").waitFor();
  assert.equal(read(desk, "mcp").weather.enabled, false);
  await app.button("New conversation", app.sidebar).click();
  await app.begin("Demo agent", desk.work);
  await app.turn("mcp");
  await onlyOurs(app);

  await app.settingsOf("MCP servers");
  const letGo = await app.holds(5_000);
  await app.button("Delete", app.row("weather")).click();
  await app.row("weather").waitFor({ state: "detached" });
  await app.button("Undo").click();
  await app.row("weather").waitFor();
  assert.ok(read(desk, "mcp").weather);
  await letGo();
  await app.button("Delete", app.row("weather")).click();
  await until("the removal", () => !read(desk, "mcp").weather);
  await app.page.getByText("No MCP servers in this directory.").waitFor();
  looks.done();
});

test("servers that fail say why, and a test that takes long can be stopped", async (t) => {
  const looks = new Looks();
  const desk = await Desk.open(t);
  write(desk, "mcp", {});
  const app = await Screen.show(desk);
  const entries = {
    sick: { type: "local", command: desk.script("sick.sh", "#!/bin/sh\necho 'cannot find the licence' >&2\nexit 3\n") },
    mute: { type: "local", command: desk.script("mute.sh", "#!/bin/sh\nwhile read -r line; do :; done\n") },
    gone: { type: "remote", url: "http://127.0.0.1:9/mcp", headers: { Authorization: "Bearer s3cret" } },
  };
  for (const [name, entry] of Object.entries(entries))
    await desk.api("PUT", `/client/config/mcp?directory=${encodeURIComponent(desk.work)}&name=${name}`, entry);
  await app.row("sick").waitFor();
  await app.button("Test", app.row("sick")).click();
  await app.row("sick").getByText("Does not work").first().waitFor();
  await app.row("sick").getByText("cannot find the licence").waitFor();
  await app.button("Test", app.row("gone")).click();
  await app.row("gone").getByText("Does not work").first().waitFor();
  assert.ok(!(await app.page.content()).includes("s3cret"));
  await looks.at(app.page, "mcp-failed");

  await app.button("Test", app.row("mute")).click();
  await until("the server", () => desk.processes().some(({ command }) => command.includes("mute.sh")));
  await app.button("Stop the test", app.row("mute")).click();
  await app.button("Test", app.row("mute")).waitFor();
  await until("the end of the server", () => !desk.processes().some(({ command }) => command.includes("mute.sh")));

  // A broken file of somebody else stays unchanged, and is reported.
  fs.writeFileSync(file(desk, "mcp"), '{\n  "a": {\n');
  await app.page.getByText("Part of the file cannot be read").waitFor();
  await looks.at(app.page, "mcp-broken");
  assert.equal(fs.readFileSync(file(desk, "mcp"), "utf8"), '{\n  "a": {\n');
  looks.done();
});

test("servers are imported from whatever is pasted", async (t) => {
  const looks = new Looks();
  const desk = await Desk.open(t);
  const app = await Screen.show(desk);
  await app.button("Import…").click();
  const dialog = app.page.getByRole("dialog", { name: "Import MCP servers" });
  const text = dialog.getByRole("textbox").first();
  await text.fill('{\n  "mcpServers": {\n    oops\n');
  await dialog.getByText("Line 3: A name in double quotes belongs here, not oops").waitFor();
  await text.fill('{"theme": "dark"}');
  await dialog.getByText("there is no MCP server in it").waitFor();
  await text.fill(`{
  // from a README
  "mcpServers": {
    "files": { "command": "npx", "args": ["-y", "@modelcontextprotocol/server-filesystem", "/srv/with a space"], "alwaysAllow": ["read"] },
    "web": { "type": "http", "url": "https://mcp.example.com/mcp", "headers": { "Authorization": "Bearer \${env:WEB_TOKEN}" } },
    "search": { "command": "uvx", "args": ["mcp-server-search"], "env": { "API_KEY": "\${input:key}" } },
  },
}`);
  await dialog.getByText("Not imported: alwaysAllow").waitFor();
  await dialog.getByText('npx -y @modelcontextprotocol/server-filesystem "/srv/with a space"').waitFor();
  await dialog.getByText("With WEB_TOKEN").waitFor();
  await dialog.getByRole("checkbox", { name: "Import search" }).uncheck();
  const names = dialog.getByRole("textbox", { name: "Name" });
  await names.nth(0).fill("web");
  await dialog.getByText("This name appears twice.").waitFor();
  assert.ok(await app.button("Import 2 servers", dialog).isDisabled());
  await names.nth(0).fill("my files");
  await looks.at(app.page, "mcp-import");
  await app.button("Import 2 servers", dialog).click();
  await dialog.waitFor({ state: "detached" });
  await app.row("my files").getByText("Approved", { exact: true }).waitFor();
  await app.row("web").waitFor();
  assert.deepEqual(read(desk, "mcp"), {
    "my files": { type: "local", command: "npx", args: ["-y", "@modelcontextprotocol/server-filesystem", "/srv/with a space"] },
    web: { type: "remote", url: "https://mcp.example.com/mcp", bearerTokenEnvVar: "WEB_TOKEN", transport: "http" },
  });
  looks.done();
});

test("what is written in an editor is there again after whatever was looked at meanwhile", async (t) => {
  const desk = await Desk.open(t);
  const app = await Screen.show(desk);
  const json = app.field("JSON");
  const half = '{\n  "type": "local",\n  "env": {"KEY": "s3cret"';
  await app.button("Add server").click();
  await app.field("Name").fill("weather");
  await json.fill(half);
  await app.page.keyboard.press("Alt+m"); // the same screen anew
  await app.page.getByText("The form waits until the JSON can be read.").waitFor();
  assert.equal(await json.inputValue(), half);
  await app.settingsOf("Skills");
  await app.page.getByRole("heading", { name: "Skills", exact: true }).waitFor();
  await app.settingsOf("MCP servers");
  await json.waitFor();
  assert.equal(await json.inputValue(), half);
  assert.equal(await app.field("Name").inputValue(), "weather");
  assert.equal(await app.page.evaluate(() => JSON.stringify([{ ...localStorage }, { ...sessionStorage }]).includes("s3cret")), false);

  const letGo = await app.holds(5_000);
  await app.button("Cancel").click();
  await app.button("Add server").waitFor();
  await app.button("Undo").click();
  await letGo();
  assert.equal(await json.inputValue(), half);
  await app.button("Cancel").click();
  await app.button("Add server").click();
  assert.equal(await app.field("Name").inputValue(), "");
});

test("a script that another program writes while an editor is open is not approved by saving, nor started by a test", async (t) => {
  const desk = await Desk.open(t);
  const ran = path.join(desk.dir, "ran");
  const weather = desk.script("weather.js", server());
  const inside = path.join(desk.work, "weather.js");
  fs.copyFileSync(weather, inside);
  const at = `/client/config/mcp?directory=${encodeURIComponent(desk.work)}`;
  await desk.api("PUT", `${at}&name=weather`, { type: "local", command: "node", args: ["weather.js"] });
  const app = await Screen.show(desk);
  await app.row("weather").getByText("Approved", { exact: true }).waitFor();
  await app.button("Edit", app.row("weather")).click();
  fs.writeFileSync(inside, server(`require("fs").writeFileSync(${JSON.stringify(ran)}, "x");`));
  await app.field("Time limit, in milliseconds").fill("9000");
  await app.button("Test").click();
  await app.page.getByRole("main").getByRole("alert").waitFor();
  await app.button("Save").click();
  await app.row("weather").getByText("Changed on disk").waitFor();
  assert.equal((await desk.api("GET", at)).items[0].approved, false);
  assert.equal(fs.existsSync(ran), false);
});

test("what another program has written is amber, and is approved as it is shown", async (t) => {
  const looks = new Looks();
  const desk = await Desk.open(t);
  const weather = desk.script("weather.js", server());
  const entry = { type: "local", command: weather, args: ["--stations", "all", "--language", "en"], env: { KEY: "s3cret" } };
  await desk.api("PUT", `/client/config/mcp?directory=${encodeURIComponent(desk.work)}&name=weather`, entry);
  const app = await Screen.show(desk);
  await app.row("weather").getByText("Approved", { exact: true }).waitFor();

  write(desk, "mcp", { weather: { ...entry, args: ["--stations", "all", "--upload", "https://elsewhere.example/collect"] } });
  await app.row("weather").getByText("Changed on disk").waitFor();
  assert.ok(await app.page.getByRole("switch", { name: "Give weather to agents" }).isDisabled());
  assert.equal(await app.button("Test", app.row("weather")).count(), 0);
  await app.button("Review", app.row("weather")).click();
  const review = app.page.getByRole("region", { name: "Review of weather" });
  await review.getByText("https://elsewhere.example/collect").first().waitFor();
  await review.getByText("This is not what you approved.").waitFor();
  assert.ok(!(await review.textContent()).includes("s3cret"));
  await looks.at(app.page, "mcp-review");

  // The file changes again while the person reads, and the screen has no event of that: the approval is for the shown content, so nothing
  // is approved.
  const query = `directory=${encodeURIComponent(desk.work)}`;
  const list = () => desk.api("GET", `/client/trust?${query}`);
  const known = await desk.api("GET", `/client/config/mcp?${query}`);
  let asked = false;
  await app.page.route(/\/client\/config\/mcp\?/, (route) => (asked ? route.continue() : route.fulfill({ json: known })));
  app.page.on("request", (request) => (asked ||= request.url().endsWith("/client/trust")));
  write(desk, "mcp", { weather: { ...entry, args: ["--third"] } });
  await app.button("Approve", review).click();
  await review.getByText("--third").first().waitFor();
  assert.equal((await list()).items[0].approved, false);
  await app.button("Approve", review).click();
  await app.row("weather").getByText("Approved", { exact: true }).waitFor();
  assert.equal((await list()).items[0].approved, true);
  looks.done();
});

test("nothing of a directory starts before it is approved", async (t) => {
  const looks = new Looks();
  const desk = await Desk.open(t);
  const weather = desk.script("weather.js", server(`require("fs").appendFileSync(${JSON.stringify(path.join(desk.dir, "ran"))}, "x");`));
  const ran = () => fs.existsSync(path.join(desk.dir, "ran"));
  write(desk, "mcp", {
    weather: { type: "local", command: weather, args: ["--quiet", ...Array.from({ length: 60 }, (_, n) => `--station-${n}=https://stations.example/${n}`), "--last"] },
  });
  const app = await App.open(desk, { agent: "Demo agent" });
  await app.request.waitFor();
  assert.equal(await app.request.getAttribute("data-kind"), "trust");
  await app.request.getByText("--last").waitFor();
  assert.deepEqual(desk.processes().filter(({ command }) => command.includes("demo-agent")), []);
  assert.ok(await app.composer.evaluate((element) => element === document.activeElement), "the composer has the focus");
  await looks.at(app.page, "trust-band");
  // The text is longer than the band, which says so until its end has been seen; the arrow keys scroll.
  await app.request.getByText("More below").waitFor();
  await app.request.getByRole("list", { name: "What would start" }).focus();
  await app.page.keyboard.press("End");
  await app.request.getByText("More below").waitFor({ state: "detached" });
  // A message sent meanwhile waits for the start. A person who moves to the band before the send was accepted stays there.
  let take;
  const taken = new Promise((done) => (take = done));
  await app.page.route(/\/prompt$/, async (route) => {
    const response = await route.fetch();
    await taken;
    await route.fulfill({ response });
  });
  await app.composer.focus();
  await app.send("mcp");

  // By keyboard alone: to the band, where Enter answers nothing by itself.
  await app.page.keyboard.press("Control+.");
  const inBand = () => app.request.evaluate((element) => element === document.activeElement);
  await until("the focus on the band", inBand);
  take();
  await until("the empty composer", async () => (await app.composer.inputValue()) === "");
  assert.ok(await inBand(), "the composer took the focus");
  await app.page.keyboard.press("Enter");
  assert.ok(!ran());
  await app.page.keyboard.press("r");
  await app.request.waitFor({ state: "detached" });
  await onlyOurs(app);
  await app.footers.getByText("Done", { exact: true }).waitFor();
  assert.ok(!ran());

  // In the inbox, for another conversation; approved once and for all.
  await app.button("New conversation", app.sidebar).click();
  await app.begin("Demo agent", desk.work);
  await app.request.waitFor();
  await app.page.keyboard.press("Alt+i");
  await app.page.getByRole("listbox", { name: "Requests" }).waitFor();
  await looks.at(app.page, "trust-inbox");
  await app.button("Approve and start", app.request).click();
  await app.page.getByText("Nothing is waiting for you").waitFor();
  await app.sidebar.getByRole("treeitem").nth(1).click();
  await app.turn("mcp");
  await app.log.getByText("forecast").first().waitFor();
  assert.ok(ran());
  await app.button("New conversation", app.sidebar).click();
  await app.begin("Demo agent", desk.work);
  await app.turn("mcp");
  await app.log.getByText("forecast").first().waitFor();
  assert.equal(await app.request.count(), 0);
  looks.done();
});

test("skills are added, fetched, looked at and approved", async (t) => {
  const looks = new Looks();
  const desk = await Desk.open(t);
  const repository = path.join(desk.dir, "skills.git-source");
  const skill = path.join(repository, "weather");
  fs.mkdirSync(path.join(skill, "scripts"), { recursive: true });
  const text = "---\nname: weather\ndescription: Answers questions about the weather. Use it when somebody asks for one.\n---\n# Weather\n\nRun `scripts/ask.sh` with a **place**.\n\n1. Ask.\n2. Answer.\n";
  fs.writeFileSync(path.join(skill, "SKILL.md"), text);
  fs.writeFileSync(path.join(skill, "scripts", "ask.sh"), "#!/bin/sh\necho sunny\n", { mode: 0o755 });
  const git = (...args) => execFileSync("git", ["-C", repository, "-c", "user.name=Ada", "-c", "user.email=ada@example.com", ...args], { encoding: "utf8" }).trim();
  git("init", "-q", "-b", "main");
  git("add", ".");
  git("commit", "-q", "-m", "First");
  const app = await Screen.show(desk, "Skills");
  await app.page.getByText("No skills in this directory.").waitFor();
  await app.button("Add skills").click();
  await app.field("Name").fill("forecasts");
  await app.page.getByRole("radio", { name: "git", exact: true }).check();
  await app.field("Address of the repository").fill(`file://${repository}`);
  await app.field("Branch, tag or commit").fill("main");
  await looks.at(app.page, "skills-editor");
  await app.button("Save").click();
  await app.row("forecasts").getByText("Not fetched yet").waitFor();
  await app.button("Fetch", app.row("forecasts")).click();
  await app.row("forecasts").getByText("1 executable file").waitFor();
  await app.row("forecasts").getByText(git("rev-parse", "HEAD").slice(0, 12)).first().waitFor();

  await app.button("Preview of weather").click();
  await app.page.getByRole("region", { name: "SKILL.md of weather" }).getByRole("heading", { name: "Weather" }).waitFor();
  await looks.at(app.page, "skills-preview");
  await app.button(/^\d+ files? of weather$/).click();
  const files = app.page.getByRole("list", { name: "Files of weather" });
  await files.getByText("scripts/ask.sh").waitFor();
  await files.getByText("executable", { exact: true }).waitFor();
  await looks.at(app.page, "skills-files");

  // The fetched skill has a program that nobody was shown.
  await app.row("forecasts").getByText("Changed, not approved").waitFor();
  await app.button("Review", app.row("forecasts")).click();
  await app.page.getByRole("region", { name: "Review of forecasts" }).getByText("scripts/ask.sh").first().waitFor();
  await looks.at(app.page, "skills-review");
  await app.button("Approve").click();
  await app.row("forecasts").getByText("1 skill", { exact: true }).waitFor();

  // A later commit comes by Fetch again, and not by itself.
  fs.writeFileSync(path.join(skill, "SKILL.md"), text.replace("Answers", "Dodges"));
  git("commit", "-q", "-a", "-m", "Second");
  await app.button("Fetch again", app.row("forecasts")).click();
  await app.row("forecasts").getByText("Dodges questions about the weather").waitFor();
  looks.done();
});

test("a source that cannot be had says why", async (t) => {
  const looks = new Looks();
  const desk = await Desk.open(t);
  const app = await Screen.show(desk, "Skills");
  await app.button("Add skills").click();
  await app.field("Name").fill("lost");
  await app.page.getByRole("radio", { name: "git", exact: true }).check();
  await app.field("Address of the repository").fill(`file://${desk.dir}/nowhere`);
  await app.button("Save").click();
  await app.button("Fetch", app.row("lost")).click();
  await app.row("lost").getByText("Failed", { exact: true }).waitFor();
  await looks.at(app.page, "skills-failed");
  await app.holds(5_000);
  await app.button("Delete", app.row("lost")).click();
  await app.button("Undo").click();
  await app.row("lost").waitFor();
  assert.ok(read(desk, "skills").lost);
  looks.done();
});

test("the screens are worked by keyboard alone", async (t) => {
  const desk = await Desk.open(t);
  const weather = desk.script("weather.js", server());
  const app = await App.open(desk);
  const { keyboard } = app.page;
  const focused = () => app.page.evaluate(() => document.activeElement?.getAttribute("aria-label") ?? document.activeElement?.textContent?.trim() ?? "");
  const tabTo = async (name) => {
    for (let n = 0; n < 40; n++) {
      if ((await focused()) === name) return;
      await keyboard.press("Tab");
    }
    assert.fail(`Tab does not come to ${name}`);
  };
  await keyboard.press("Alt+m");
  await app.page.getByRole("heading", { name: "MCP servers", exact: true }).waitFor();
  assert.equal(await focused(), "MCP servers");
  await app.page.getByRole("textbox", { name: "Directory" }).focus();
  await keyboard.type(desk.work);
  await keyboard.press("Enter");
  await app.page.getByText("No MCP servers in this directory.").waitFor();
  await app.page.getByRole("heading", { name: "MCP servers", exact: true }).focus();
  await tabTo("Add server");
  await keyboard.press("Enter");
  await keyboard.type("weather");
  await keyboard.press("Tab"); // the kind
  await keyboard.press("Tab"); // the program
  await keyboard.type(weather);
  await keyboard.press("Enter");
  await app.page.getByRole("listitem", { name: "weather", exact: true }).getByText("Approved", { exact: true }).waitFor();
  await until("the focus on Edit", async () => (await focused()) === "Edit");
  await tabTo("Test");
  await keyboard.press("Enter");
  await app.page.getByText("Tells what it was like.").waitFor();
  await tabTo("Close the result");
  await keyboard.press("Enter");
  assert.equal(await focused(), "Test");
  await keyboard.press("Shift+Tab");
  await keyboard.press("Enter");
  await app.page.getByRole("heading", { name: "Edit weather" }).waitFor();
  await keyboard.press("Escape");
  await until("the focus on Edit", async () => (await focused()) === "Edit");
  await keyboard.press("Alt+s");
  await app.page.getByRole("heading", { name: "Skills", exact: true }).waitFor();
  assert.equal(await focused(), "Skills");
});

test("a server for all projects is there in each of them, is overridden in one, and is removed", async (t) => {
  const looks = new Looks();
  const desk = await Desk.open(t);
  const weather = desk.script("weather.js", server());
  const second = path.join(desk.home, "second");
  fs.mkdirSync(second);
  const all = path.join(desk.config, "deskhand", "mcp.json");
  const app = await Screen.show(desk);
  const scope = (name) => app.page.getByRole("radio", { name, exact: true });
  const inherited = app.page.getByRole("list", { name: "From all projects" });
  const project = async (directory) => {
    await scope("This project").check();
    await app.field("Directory").fill(directory);
    await app.field("Directory").press("Enter");
  };
  const tools = async (directory) => {
    await app.button("New conversation", app.sidebar).click();
    await app.begin("Demo agent", directory);
    await app.turn("mcp");
  };

  await scope("All projects").check();
  await app.page.getByText("No MCP servers for all projects.").waitFor();
  await looks.at(app.page, "mcp-all-empty");
  await app.button("Add server").click();
  await app.field("Name").fill("weather");
  await app.field("Program").fill(weather);
  await app.button("Save").click();
  await app.row("weather").getByText("Approved", { exact: true }).waitFor();
  assert.deepEqual(JSON.parse(fs.readFileSync(all, "utf8")), { weather: { type: "local", command: weather, args: [] } });
  assert.equal(fs.statSync(all).mode & 0o777, 0o600);
  await app.button("Test", app.row("weather")).click();
  await app.row("weather").getByText("Tells what it was like.").waitFor();

  // Two projects have it, and so do their agents.
  for (const directory of [desk.work, second]) {
    await project(directory);
    await inherited.getByRole("listitem", { name: "weather" }).getByText(weather).waitFor();
    await tools(directory);
    await app.log.getByText("forecast").first().waitFor();
    await app.settingsOf("MCP servers");
  }
  await project(desk.work);
  await inherited.waitFor();
  await looks.at(app.page, "mcp-inherited");

  // One project has another entry in its place.
  await app.button("Override here", inherited).click();
  await app.page.getByRole("heading", { name: "Override weather in this project" }).waitFor();
  await looks.at(app.page, "mcp-override");
  await app.field("JSON").fill(JSON.stringify({ type: "local", command: weather, args: [], enabled: false }));
  await app.button("Save").click();
  await app.page.getByRole("list", { name: "MCP servers" }).getByText("Off").waitFor();
  await inherited.getByText("This project has its own").waitFor();
  await looks.at(app.page, "mcp-overridden-here");
  await tools(desk.work);
  await onlyOurs(app);
  await app.settingsOf("MCP servers");
  await scope("All projects").check();
  await app.row("weather").getByText(`“${path.basename(desk.work)}” has its own entry with this name, which is used there.`).waitFor();
  await looks.at(app.page, "mcp-overridden");

  const letGo = await app.holds(5_000);
  await app.button("Delete", app.row("weather")).click();
  await letGo();
  await until("the removal", () => !JSON.parse(fs.readFileSync(all, "utf8")).weather);
  await project(second);
  await app.page.getByText("No MCP servers in this directory.").waitFor();
  await inherited.waitFor({ state: "detached" });
  looks.done();
});
