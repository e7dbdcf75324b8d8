// The pictures of the manual that are of whole screens; see pictures.test.mjs. With DESKHAND_PICTURES=all also those for people to look at
// alone, of what holds very much.
import { execFileSync } from "node:child_process";
import fs from "node:fs";
import path from "node:path";
import { images } from "./camera.mjs";
import { Desk, program, until } from "./desk.mjs";
import { begin, openLighthouse, scene, show, waiting, wide } from "./scenes.mjs";
import { scriptedAgent } from "./scriptedagent.mjs";
import { Registry } from "./registry.mjs";

scene("what a directory brings", async (t) => {
  const tools = (desk) => desk.script("tides.js", `#!/usr/bin/env node
require("readline").createInterface({ input: process.stdin }).on("line", (line) => {
  const { id, method, params } = JSON.parse(line);
  const send = (result) => console.log(JSON.stringify({ jsonrpc: "2.0", id, result }));
  if (method === "initialize") send({ protocolVersion: params.protocolVersion, capabilities: { tools: {} }, serverInfo: { name: "tides", version: "1.2.3" } });
  else if (method === "tools/list") send({ tools: [
    { name: "high_water", description: "Tells when the water is high.", inputSchema: { type: "object" } },
    { name: "wind", description: "Tells how hard it blows, in Beaufort.", inputSchema: { type: "object" } },
  ] });
  else if (id !== undefined) send({});
});
`);
  const { desk, app, page, camera } = await openLighthouse(t);
  const where = `directory=${encodeURIComponent(desk.work)}`;
  const go = async (keys, name) => {
    await page.keyboard.press(keys);
    await page.getByRole("heading", { name, exact: true }).waitFor();
    const field = page.getByRole("textbox", { name: "Directory" });
    await field.fill("~/lighthouse");
    await field.press("Enter");
  };
  const row = (name) => page.getByRole("main").getByRole("listitem", { name, exact: true });
  await go("Alt+m", "MCP servers");
  await page.getByText("No MCP servers in this directory.").waitFor();
  await camera.take(page, "mcp-empty");
  fs.copyFileSync(tools(desk), path.join(desk.work, "tides.js"));
  fs.chmodSync(path.join(desk.work, "tides.js"), 0o755);
  await desk.api("PUT", `/client/config/mcp?${where}&name=tides`, { type: "local", command: [path.join(desk.work, "tides.js")] });
  await desk.api("PUT", `/client/config/mcp?${where}&name=issues`, { type: "remote", url: "https://issues.example.org/mcp", bearerTokenEnvVar: "ISSUES_TOKEN" });
  await app.button("Test", row("tides")).click();
  await row("tides").getByText("2 tools").first().waitFor();
  await camera.take(page, "mcp", { manual: true });
  await app.button("Edit", row("tides")).click();
  await page.getByRole("heading", { name: "Edit tides" }).waitFor();
  await camera.take(page, "mcp-editor");
  await page.keyboard.press("Escape");

  await go("Alt+s", "Skills");
  await page.getByText("No skills in this directory.").waitFor();
  await camera.take(page, "skills-empty");
  const source = path.join(desk.home, "skills", "tide-table");
  fs.mkdirSync(path.join(source, "scripts"), { recursive: true });
  fs.writeFileSync(path.join(source, "SKILL.md"), "---\nname: tide-table\ndescription: Writes the tide table of a month. Use it when somebody asks when the water is high.\n---\n# Tide table\n\nRun `scripts/table.sh` with a **month**.\n");
  fs.writeFileSync(path.join(source, "scripts", "table.sh"), "#!/bin/sh\necho high water\n", { mode: 0o755 });
  await desk.api("PUT", `/client/config/skills?${where}&name=tides`, { sources: [{ type: "local", source: path.join(desk.home, "skills") }] });
  await app.button("Preview of tide-table").click();
  await page.getByRole("region", { name: "SKILL.md of tide-table" }).getByRole("heading").first().waitFor();
  await camera.take(page, "skills", { manual: true });

  const told = { text: "Run `go test ./...` before you say that something is done.\nWrite to sailors: short words, no jokes.", mode: "append" };
  const { hash } = await desk.api("PUT", `/client/config/instructions?${where}`, { ...told, seen: "" });
  await app.settingsOf("Instructions");
  await page.getByRole("textbox", { name: "Instructions", exact: true }).waitFor();
  await camera.take(page, "instructions", { manual: true });
  await desk.api("PUT", `/client/config/instructions?${where}`, { text: "", mode: "append", seen: hash });

  // What an agent reads by itself.
  fs.mkdirSync(path.join(desk.work, ".claude"), { recursive: true });
  fs.writeFileSync(path.join(desk.work, ".claude/settings.json"), JSON.stringify({ hooks: { PreToolUse: [{ matcher: "Bash", hooks: [{ type: "command", command: "$CLAUDE_PROJECT_DIR/tools/check.sh --strict" }] }] } }, null, 2));
  fs.mkdirSync(path.join(desk.work, "tools"), { recursive: true });
  fs.writeFileSync(path.join(desk.work, "tools/check.sh"), "#!/bin/sh\n# Looks at each command.\necho checked\n", { mode: 0o755 });
  await begin(desk, "Slow in a storm");
  await show(app, "Slow in a storm");
  await app.request.waitFor();
  await camera.take(page, "trust", { manual: true });
});

scene("settings", async (t) => {
  const { desk, app, page, camera } = await openLighthouse(t);
  await desk.api("POST", "/client/rules", { effect: "allow", scope: "everywhere", kind: "execute", pattern: "go test *" });
  await desk.api("POST", "/client/rules", { effect: "deny", scope: "everywhere", kind: "execute", pattern: "git push --force*", note: "by hand only" });
  await desk.api("POST", "/client/rules", { effect: "ask", scope: "everywhere", kind: "edit", pattern: "*.lock" });
  await begin(desk, "Slow in a storm", { message: "The lamp turns too fast in a storm." });
  await until("the index", async () => !(await desk.api("GET", "/client/search?q=lamp&limit=1")).pending);
  await page.keyboard.press("Control+Comma");
  await page.locator("[data-part=general]").waitFor();
  await camera.take(page, "settings", { manual: true });
  const parts = page.getByRole("navigation", { name: "Parts" });
  for (const [name, file, manual] of [
    ["Agents", "settings-agents"], ["Files from agents", "settings-files"], ["Permissions", "settings-permissions", true], ["Directories & trust", "settings-trust"], ["Notifications", "settings-notifications"],
    ["Keyboard", "settings-keyboard", true], ["Places", "settings-places"], ["Discord", "settings-discord"], ["Local API", "settings-api"], ["Data", "settings-data", true],
    ["Updates", "settings-updates"], ["About", "settings-about"],
  ]) {
    const to = () => parts.getByRole("button", { name, exact: true }).click();
    await to();
    await camera.take(page, file, { manual, says: page.getByRole("region", { name, exact: true }), before: to });
  }
  await app.settingsOf("Local API");
  const access = page.getByTestId("access");
  await access.getByRole("button", { name: "New token" }).click();
  await page.keyboard.type("nightly script");
  const token = () => access.getByRole("textbox").first().scrollIntoViewIfNeeded();
  await camera.take(page, "settings-token", { before: token });
  await page.keyboard.press("Escape");
  await page.getByRole("searchbox", { name: "Search the settings" }).fill("zeppelin");
  await camera.take(page, "settings-nothing");
  await page.keyboard.press("Alt+a");
  await page.getByRole("heading", { name: "Agents", exact: true }).waitFor();
  await app.button("Test", page.getByRole("listitem", { name: "Keeper", exact: true })).click();
  await page.getByRole("region", { name: "Test of Keeper" }).getByText("It works").waitFor();
  await camera.take(page, "agents-test");
  await page.keyboard.press("Control+k");
  await page.keyboard.type("?undo");
  await page.getByRole("dialog").getByRole("option", { name: /Undo/ }).first().waitFor();
  await page.keyboard.press("Enter");
  const help = page.getByRole("dialog", { name: "Help" });
  await help.getByRole("heading", { level: 1 }).waitFor();
  await camera.take(page, "help");
  await app.button("Keys", help).or(help.getByRole("button", { name: /keyboard|keys/i })).first().click();
  await camera.take(page, "help-keys");
});

scene("what was said elsewhere", async (t) => {
  const { desk, app, page, camera } = await openLighthouse(t, { agents: [{ id: "mate", name: "Mate", command: program(), args: ["demo-agent"] }] });
  for (const title of ["Plan a lamp for the pier", "Help me with the tide table", "Think: a thought about the foghorn"])
    await begin(desk, title, { agent: "mock", message: title });
  await page.keyboard.press("Control+k");
  await page.keyboard.type("import conv");
  await page.keyboard.press("Enter");
  await app.button("List conversations of Mate").click();
  await page.getByRole("region", { name: "Mate" }).getByRole("listitem").nth(2).waitFor();
  await camera.take(page, "import", { manual: true });
});

scene("an agent is downloaded", async (t) => {
  const claude = "@agentclientprotocol/claude-agent-acp";
  const registry = await Registry.open(t);
  registry.publish(claude, "0.101.0", "claude-agent-acp", "#!/usr/bin/env node\n", 3 << 20);
  const { app, page, camera } = await openLighthouse(t, { env: { npm_config_registry: registry.url } });
  registry.hold(claude);
  await app.choose("Agent", /^More agents/);
  const card = page.getByRole("listitem", { name: "Claude Code", exact: true });
  await app.button("Install", card).click();
  await card.getByText(/^\d\.\d MB of about 3\.\d MB$/).waitFor();
  await card.getByText(/^npm http /).waitFor();
  await camera.take(page, "agents", { manual: true });
  await app.button("Cancel", card).click();
  await card.getByRole("progressbar").waitFor({ state: "detached" });
  registry.release(claude);
});

scene("attachments", async (t) => {
  const { desk, app, page, camera } = await openLighthouse(t);
  const put = (file, data) => (fs.writeFileSync(file, data), file);
  fs.mkdirSync(path.join(desk.work, "plans"));
  const lamp = fs.readFileSync(path.join(images, "../../app/icon.png"));
  const files = [
    put(path.join(desk.home, "lamp at night.png"), lamp), put(path.join(desk.home, "error log.txt"), "no light\n".repeat(400)),
    put(path.join(desk.home, "measurements.bin"), Buffer.alloc(300_000, 7)), path.join(desk.work, "plans"),
  ];
  put(path.join(desk.work, "lamp.png"), lamp);
  put(path.join(desk.work, "report.pdf"), "%PDF-1.4\n%%EOF\n");
  put(path.join(desk.work, "summary.md"), "# Summary\n");
  const id = await begin(desk, "Why is it dark", { agent: "mock" });
  await show(app, "Why is it dark");
  await app.log.getByText("Demo agent is ready.").waitFor();
  const over = (kind) => page.evaluate((kind) => {
    const transfer = new DataTransfer();
    for (const name of ["lamp.png", "error log.txt", "measurements.bin"]) transfer.items.add(new File(["x"], name));
    document.querySelector("main").dispatchEvent(new DragEvent(kind, { dataTransfer: transfer, bubbles: true, cancelable: true }));
  }, kind);
  const hang = async () => {
    await over("dragenter");
    await over("dragover");
    await page.getByTestId("drop").waitFor();
  };
  await camera.take(page, "attach-drop", { manual: true, last: hang }); // a pointer that moves ends it
  await over("dragleave");
  const { items } = await desk.api("POST", "/client/attachments", { paths: files, session: id });
  await desk.api("PATCH", `/client/sessions/${id}`, { attachments: items.map((one) => one.id), draft: "What do these tell?" });
  await page.getByText("A copy goes to .deskhand/attachments", { exact: false }).first().waitFor();
  await page.locator("ul[aria-label=Attachments] img").first().waitFor();
  await camera.take(page, "attach-chips", { manual: true });
  await desk.api("PATCH", `/client/sessions/${id}`, { attachments: [], draft: "" });
  await desk.api("POST", `/client/sessions/${id}/prompt`, { message: "attach lamp.png report.pdf summary.md", attachments: [{ id: items[1].id }] });
  await app.log.getByRole("article", { name: /^File from/ }).filter({ hasText: "summary.md" }).waitFor();
  await until("the picture", () => page.evaluate(() => document.querySelector("article[aria-label] img")?.naturalWidth > 0));
  await camera.take(page, "attach-given", { manual: true, says: false }); // a file may be there before or after the call that gave it
  await app.button("Conversation actions").click();
  await page.getByRole("menuitem", { name: "Files…" }).click();
  await page.getByRole("dialog").getByRole("listitem").filter({ hasText: "lamp.png" }).waitFor();
  await camera.take(page, "attach-files", { manual: true, says: page.getByRole("dialog") }); // behind it is attach-given
});

/** An agent that works for those alone who have logged in. */
const harbourMaster = (desk) => desk.script("master.js", `#!/usr/bin/env node
require("readline").createInterface({ input: process.stdin }).on("line", (line) => {
  const { id, method } = JSON.parse(line);
  const send = (message) => console.log(JSON.stringify({ jsonrpc: "2.0", id, ...message }));
  if (method === "initialize") send({ result: {
    protocolVersion: 1, agentInfo: { name: "master", title: "Harbour Master", version: "1.4.0" }, agentCapabilities: { auth: { logout: {} } },
    authMethods: [
      { id: "account", name: "Harbour account", description: "Opens the browser" },
      { id: "terminal", name: "Log in by name", description: "Asks in a terminal", type: "terminal", args: ["--login"] },
      { id: "key", name: "API key", type: "env_var", link: "https://harbour.example/keys", vars: [{ name: "HARBOUR_KEY", label: "Key" }] },
    ],
  } });
  else if (method === "session/new") send({ error: { code: -32000, message: "Authentication required" } });
  else if (id !== undefined && method !== "authenticate") send({ error: { code: -32601, message: "Method not found" } });
});
`);

scene("a login", async (t) => {
  const { app, page, camera } = await openLighthouse(t, { ready: (desk) => desk.agents([scriptedAgent(desk), { id: "master", name: "Harbour Master", command: harbourMaster(desk) }]) });
  await app.begin("Harbour Master", "~/lighthouse");
  await app.exit.getByText("it asks to log in first").waitFor();
  await app.button("Log in", app.exit).click();
  const dialog = page.getByRole("dialog", { name: "Log in to Harbour Master" });
  await dialog.getByRole("button", { name: /^Harbour account/ }).waitFor();
  await camera.take(page, "login", { manual: true });
  await dialog.getByRole("button", { name: /^API key/ }).click();
  await dialog.getByLabel("Key", { exact: true }).fill("not a real key");
  await camera.take(page, "login-key");
  await page.keyboard.press("Escape");
});

scene("a place elsewhere", async (t) => {
  const token = "the-token-of-the-other-machine-0123456789";
  const runtime = Desk.make(t);
  runtime.flags = ["--token", token];
  await runtime.start();
  const { app, page, camera } = await openLighthouse(t);
  await app.settingsOf("Places");
  await app.button("Add a place").click();
  await page.getByRole("textbox", { name: "Name", exact: true }).fill("Build machine");
  await page.getByRole("textbox", { name: "Address", exact: true }).fill(new URL(runtime.url).origin);
  await page.getByLabel("Token", { exact: true }).fill(token);
  await app.button("Add a place").click();
  const row = page.getByRole("listitem").filter({ hasText: "Build machine" });
  await row.getByText("Ready").waitFor();
  await app.button("Dismiss").click({ timeout: 6_000 }).catch(() => {}); // where the token is kept; it goes by itself as well
  const to = () => page.getByRole("navigation", { name: "Parts" }).getByRole("button", { name: "Places", exact: true }).click();
  await to();
  await camera.take(page, "places", { manual: true, says: page.getByRole("region", { name: "Places", exact: true }), before: to });
  await app.button("New conversation", app.sidebar).click();
  await page.getByRole("button", { name: /^Where:/ }).click();
  await page.getByRole("option", { name: /Build machine/ }).click();
  await page.getByRole("button", { name: "Agent: Demo agent" }).waitFor();
  await app.composer.fill("Read the log of the last storm");
  await camera.take(page, "place-start", { manual: true });
});

scene("what goes wrong", async (t) => {
  const { desk, app, page, camera } = await openLighthouse(t);
  const gone = path.join(desk.home, "old");
  fs.mkdirSync(gone);
  for (const name of ["lamp.go", "storm.go", "README.md"]) fs.writeFileSync(path.join(gone, name), "");
  await begin(desk, "In the old directory", { cwd: gone, message: "review" });
  await begin(desk, "Ended in the middle", { agent: "mock", message: "crash", done: false });
  await show(app, "Ended in the middle");
  await app.exit.waitFor();
  await camera.take(page, "agent-dead", { manual: true });
  await desk.stop();
  fs.rmSync(gone, { recursive: true });
  await desk.start();
  await page.goto(desk.link);
  await show(app, "In the old directory");
  await page.getByText("is missing. The conversation is kept").waitFor();
  await camera.take(page, "missing", { manual: true });
  await app.button("Conversation actions").click();
  await page.getByRole("menuitem", { name: "Locate directory…" }).click();
  await page.getByRole("dialog", { name: "Locate a directory" }).waitFor();
  await camera.take(page, "relink");
});

scene("very much of it", async (t) => {
  const { desk, app, page, camera } = await openLighthouse(t);
  const long = "Why the lamp of the lighthouse turns faster than it should as soon as it blows from the west ".repeat(3).slice(0, 200);
  const hebrew = "למה המנורה של המגדלור מסתובבת מהר מדי כשיש סערה מן המערב, ומה צריך לתקן קודם";
  await begin(desk, long, { message: `review ${"very".repeat(120)}\n\n${long}` });
  await begin(desk, hebrew, { agent: "mock", message: `echo\n${hebrew}.\n\n1. ראשית, \`lamp.go\`\n2. אחר כך הבדיקות (TestStorm)\n\nمرحبا بالعالم` });
  for (let n = 1; n <= 50; n++) await begin(desk, n % 7 ? `Question ${n}` : `${n} ${long}`.slice(0, 200), { agent: "mock", message: n % 3 ? "permission" : "question", done: false });
  await waiting(desk, 50);
  await page.keyboard.press("Alt+i");
  await page.getByRole("option").nth(40).waitFor();
  await camera.take(page, "inbox-fifty");
  await app.sidebar.getByRole("treeitem", { name: long, exact: false }).last().click();
  await camera.take(page, "long-title");
  await app.sidebar.getByRole("treeitem").filter({ hasText: "למה" }).first().click();
  await app.composer.fill(`${hebrew}?`);
  await camera.take(page, "right-to-left");
  await app.composer.fill("");
  await page.setViewportSize({ width: 720, height: 480 });
  await app.button("Show or hide the sidebar").click();
  await app.sidebar.waitFor();
  await camera.take(page, "sidebar-small", { sizes: [[720, 480]] });
}, wide);

scene("twenty thousand turns", async (t) => {
  const data = path.join(images, "../../build/bin/long/data");
  const { app, page, camera } = await openLighthouse(t, {
    ready: (desk) => {
      if (!fs.existsSync(data)) execFileSync("go", ["run", "./build/seeddata", "-data", data, "-work", path.join(data, "../work"), "-sessions", "300"], { cwd: path.join(images, "../.."), stdio: "inherit" });
      fs.cpSync(data, path.join(desk.data, "deskhand"), { recursive: true });
    },
  });
  await show(app, "The long one");
  await app.log.getByText("Step 19999").first().waitFor();
  await camera.take(page, "long");
  await app.log.press("Home");
  await camera.take(page, "long-up");
}, wide);

scene("data of a newer Deskhand", async (t) => {
  const { desk, app, page, camera } = await openLighthouse(t);
  await begin(desk, "Slow in a storm", { message: "The lamp turns too fast in a storm." });
  await until("the index", async () => (await desk.api("GET", "/client/storage")).pending === 0);
  await desk.stop();
  const file = fs.openSync(path.join(desk.data, "deskhand", "deskhand.db"), "r+");
  fs.writeSync(file, Buffer.from([0, 0, 0, 99]), 0, 4, 60); // where SQLite's header has the version of the schema
  fs.closeSync(file);
  fs.writeFileSync(path.join(desk.data, "deskhand", "written-by"), "99.0\n");
  await desk.start(Number(new URL(desk.url).port));
  await page.reload();
  await page.getByRole("alert").getByText(/^Deskhand 99\.0 wrote/).waitFor();
  await show(app, "Slow in a storm");
  await camera.take(page, "newer");
}, wide);
