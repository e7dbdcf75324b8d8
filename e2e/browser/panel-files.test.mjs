// The side panel's Files and Terminal tabs: a directory is looked through and its files changed beside the agent, files are dropped into
// it; the person's own terminals outlive the tab and the page, and the agent's programs stand beside them.
import assert from "node:assert/strict";
import fs from "node:fs";
import path from "node:path";
import { test } from "node:test";
import { App, Looks } from "./app.mjs";
import { picture } from "./picture.mjs";
import { Desk, until } from "./desk.mjs";

class Beside extends App {
  constructor(app) {
    super(app.page, app.desk);
    this.panel = this.page.getByRole("complementary", { name: "Side panel" });
    this.tree = this.panel.getByRole("tree");
    this.file = this.panel.getByRole("region").filter({ has: this.page.getByRole("button", { name: "Back to the files" }) });
    this.text = this.panel.getByRole("textbox", { name: /^Text of / });
    this.choice = this.panel.getByRole("button", { name: /^What is shown: / });
    this.terminal = this.panel.getByRole("group", { name: /^Terminal \d+ of / });
    this.menu = this.page.getByRole("menu");
  }

  static async open(desk, options) {
    return new Beside(await App.open(desk, options));
  }

  row(name) {
    return this.tree.getByRole("treeitem", { name, exact: true });
  }

  /** What the terminal shows. */
  shows(text) {
    return this.terminal.locator(".xterm-rows").getByText(text).first();
  }

  /** Types into the program, as fast as nobody does. */
  async types(line) {
    await this.terminal.locator("textarea").focus();
    await this.page.keyboard.type(`${line}\n`);
  }

  focused() {
    return this.page.evaluate(() => {
      const at = document.activeElement;
      return at === document.body ? "" : (at.getAttribute("aria-label") ?? at.textContent.trim());
    });
  }
}

/** Lets files hang above an element, and lets them go. */
async function drop(app, target, types, files) {
  await target.evaluate((element, [types, files]) => {
    const transfer = new DataTransfer();
    for (const { name, text } of files) transfer.items.add(new File([text], name));
    for (const kind of types) element.dispatchEvent(new DragEvent(kind, { dataTransfer: transfer, bubbles: true, cancelable: true }));
  }, [types, files]);
}

function project(desk) {
  const put = (name, content) => {
    fs.mkdirSync(path.dirname(path.join(desk.work, name)), { recursive: true });
    fs.writeFileSync(path.join(desk.work, name), content);
  };
  put("src/main.go", 'package main\n\nimport "fmt"\n\nfunc main() {\n\tfmt.Println("hello")\n}\n');
  put("src/deep/er/still.ts", "export const still = true;\n");
  put("README.md", "# The project\n\nIt **works**.\n");
  put("windows.txt", "one\r\ntwo\r\n");
  put("mixed.txt", "one\r\ntwo\n");
  put("data.bin", Buffer.from([0, 1, 2, 3]));
  put("chart.png", picture(320, 200, [60, 110, 220]));
  put("עברית and a very long name that does not fit into the panel at all, however wide it is.txt", "שלום\n");
  for (let n = 0; n < 1500; n++) put(`many/file-${String(n).padStart(4, "0")}.txt`, `${n}\n`);
  return (name) => fs.readFileSync(path.join(desk.work, name), "utf8");
}

test("the keys that save save the file, wherever S is, and never put the message away instead", async (t) => {
  const desk = Desk.make(t);
  const on = project(desk);
  await desk.start();
  const app = await Beside.open(desk, { agent: "Demo agent", viewport: { width: 1440, height: 900 } });
  const keys = (at, code) =>
    at.evaluate((element, code) => element.dispatchEvent(
      new KeyboardEvent("keydown", { key: "s", code, ctrlKey: true, bubbles: true, cancelable: true })), code);
  const nothing = app.page.getByText("Nothing to save: main.go is unchanged.");
  await app.composer.fill("half a thought");
  await app.composer.press("Alt+2");
  await app.row("src").click();
  await app.row("main.go").click();
  await app.file.getByText("fmt.Println").waitFor();
  await app.file.focus();
  const letGo = await app.holds(5_000);
  await app.page.keyboard.press("Control+s"); // it is only read
  await nothing.waitFor();
  await app.button("Dismiss").click();
  await letGo();
  await app.button("Edit", app.file).click();
  await app.page.keyboard.press("Control+s");
  await nothing.waitFor();
  await app.text.fill("package mine\n");
  assert.equal(await keys(app.text, "Semicolon"), false); // Dvorak
  await app.text.waitFor({ state: "detached" });
  assert.equal(on("src/main.go"), "package mine\n");

  // A click on what takes no focus leaves it nowhere.
  await app.button("Edit", app.file).click();
  await app.text.fill("package again\n");
  await app.page.evaluate(() => document.activeElement.blur());
  await app.page.keyboard.press("Control+s");
  await app.text.waitFor({ state: "detached" });
  assert.equal(on("src/main.go"), "package again\n");
  assert.equal(await app.composer.inputValue(), "half a thought");
});

test("files are looked through, changed, found, mentioned and dropped", async (t) => {
  const looks = new Looks();
  const desk = Desk.make(t);
  const on = project(desk);
  await desk.start();
  const app = await Beside.open(desk, { agent: "Demo agent", viewport: { width: 1440, height: 900 } });
  await app.composer.press("Alt+2");
  await app.row("src").waitFor();
  assert.deepEqual(await app.tree.getByRole("treeitem").evaluateAll((rows) => rows.slice(0, 3).map((row) => row.getAttribute("aria-expanded"))), ["false", "false", null]);
  await looks.at(app.page, "panel-files");

  // By keyboard: into a directory, on by letters, and out again.
  await app.tree.focus();
  await app.page.keyboard.press("End");
  await app.page.keyboard.press("s");
  await app.page.keyboard.press("ArrowRight");
  await app.row("main.go").waitFor();
  await app.page.keyboard.press("m");
  await app.page.keyboard.press("a");
  await app.page.keyboard.press("i");
  await app.page.keyboard.press("Enter");
  await app.file.getByText("fmt.Println").waitFor();
  await until("the colours", async () => (await app.file.locator(".tok-keyword, .tok-string").count()) > 0);
  await looks.at(app.page, "panel-file");

  // Of a long directory only what is seen is there, and all of it can be reached.
  await app.row("many").click();
  await app.row("file-0003.txt").waitFor();
  assert.ok((await app.tree.getByRole("treeitem").count()) < 80);
  await app.page.keyboard.press("End");
  await app.row("windows.txt").waitFor();
  await app.page.keyboard.press("Home");
  await app.row("many").click();
  await app.row("file-0003.txt").waitFor({ state: "detached" });

  // Changed and saved.
  await app.row("main.go").click();
  await app.button("Edit", app.file).click();
  await app.text.waitFor();
  assert.equal(await app.focused(), "Text of main.go");
  await app.text.fill("package mine\n");
  await app.file.getByText("Not saved", { exact: true }).waitFor();
  await app.page.keyboard.press("Control+s");
  await app.text.waitFor({ state: "detached" });
  assert.equal(on("src/main.go"), "package mine\n");

  // An agent writes to it while a person does: both are kept, over a reload too, until the person has chosen.
  await app.button("Edit", app.file).click();
  await app.text.fill("package mine // again\n");
  fs.writeFileSync(path.join(desk.work, "src/main.go"), "package theirs\n");
  await app.page.keyboard.press("Control+s");
  const clash = app.file.getByRole("alert").filter({ hasText: "Another program has changed this file" });
  await clash.waitFor();
  assert.equal(on("src/main.go"), "package theirs\n");
  await app.button("Show both", clash).click();
  await app.file.getByText("package theirs").waitFor();
  await app.file.getByText("package mine // again").waitFor();
  await looks.at(app.page, "panel-file-both");
  await app.page.reload();
  await app.row("src").waitFor();
  await app.row("src").click();
  await app.row("main.go").click();
  await clash.waitFor();
  assert.equal(await app.text.inputValue(), "package mine // again\n");
  await app.button("Overwrite with mine", clash).click();
  await app.text.waitFor({ state: "detached" });
  assert.equal(on("src/main.go"), "package mine // again\n");

  // What is on the disk can be taken in place of it, and that can be taken back.
  await app.button("Edit", app.file).click();
  await app.text.fill("lost?\n");
  fs.rmSync(path.join(desk.work, "src/main.go"));
  await app.page.keyboard.press("Control+s");
  const gone = app.file.getByRole("alert").filter({ hasText: "Another program has removed this file" });
  const letGo = await app.holds(5_000);
  await app.button("Cancel", gone).click();
  await app.button("Undo").click();
  await letGo();
  await app.button("Restore file", gone).click();
  await app.text.waitFor({ state: "detached" });
  assert.equal(on("src/main.go"), "lost?\n");

  // Line ends stay as they are, and what would lose some is not changed.
  await app.row("windows.txt").click();
  await app.button("Edit", app.file).click();
  await app.text.fill("one\n2\n");
  await app.button("Save", app.file).click();
  await app.text.waitFor({ state: "detached" });
  assert.equal(on("windows.txt"), "one\r\n2\r\n");
  await app.row("mixed.txt").click();
  await app.file.getByText("It has mixed line endings").waitFor();
  assert.equal(await app.button("Edit", app.file).count(), 0);

  // What is no text.
  await app.row("data.bin").click();
  await app.file.getByText("This cannot be shown here").waitFor();
  await app.row("chart.png").click();
  await until("the picture", () => app.file.locator("img").evaluate((img) => img.naturalWidth === 320));
  await looks.at(app.page, "panel-picture");
  await app.row("README.md").click();
  await app.file.getByRole("heading", { name: "The project" }).waitFor();
  await app.button("Source", app.file).click();
  await app.file.getByText("It **works**.").waitFor();

  // What the agent writes comes by itself.
  await app.turn("disk");
  await app.row("demo.txt").or(app.tree.getByRole("treeitem", { name: /demo/ })).first().waitFor();

  // Found, and mentioned in the message.
  await app.panel.getByRole("combobox", { name: "Find a file" }).fill("still");
  await app.panel.getByRole("option", { name: /still\.ts/ }).waitFor();
  await looks.at(app.page, "panel-find");
  await app.page.keyboard.press("Enter");
  await app.file.getByText("still = true").waitFor();
  await app.row("still.ts").waitFor();
  await app.composer.fill("Look at");
  await app.button("Mention in the message", app.file).click();
  await until("the mention", async () => (await app.composer.inputValue()).includes("@src/deep/er/still.ts"));
  await app.page.getByRole("list", { name: "Attachments" }).getByText("still.ts").waitFor();

  // Dropped on a directory: asked first, and asked again before something is replaced.
  await drop(app, app.row("deep"), ["dragenter", "dragover"], [{ name: "new.txt", text: "dropped" }]);
  await app.panel.getByText("Copy into src/deep").waitFor();
  await looks.at(app.page, "panel-drop");
  await drop(app, app.row("deep"), ["drop"], [{ name: "new.txt", text: "dropped" }, { name: "other.txt", text: "other" }]);
  const asks = app.page.getByRole("dialog");
  await asks.getByText("Copy 2 files into src/deep?").first().waitFor();
  await app.button("Cancel", asks).last().click();
  assert.ok(!fs.existsSync(path.join(desk.work, "src/deep/new.txt")));
  await drop(app, app.row("deep"), ["dragenter", "dragover", "drop"], [{ name: "new.txt", text: "dropped" }]);
  await app.button("Copy", asks).click();
  await asks.waitFor({ state: "detached" });
  await app.row("new.txt").waitFor();
  assert.equal(on("src/deep/new.txt"), "dropped");
  await drop(app, app.row("new.txt"), ["dragenter", "dragover", "drop"], [{ name: "new.txt", text: "dropped again" }]);
  await app.button("Copy", asks).click();
  await asks.getByText("These already exist").waitFor();
  assert.equal(on("src/deep/new.txt"), "dropped");
  await looks.at(app.page, "panel-drop-again");
  await app.button("Replace them", asks).click();
  await asks.waitFor({ state: "detached" });
  assert.equal(on("src/deep/new.txt"), "dropped again");

  // A new file, from the menu, by keyboard.
  await app.row("new.txt").click();
  await app.tree.focus();
  await app.page.keyboard.press("Shift+F10");
  await app.menu.waitFor();
  await looks.at(app.page, "panel-files-menu");
  await app.menu.getByRole("menuitem", { name: "New file here…" }).click();
  await asks.getByRole("textbox", { name: "Name of the new file" }).fill("fresh/one.md");
  await app.page.keyboard.press("Enter");
  await app.file.getByRole("heading", { name: "one.md" }).waitFor();
  assert.equal(on("src/deep/fresh/one.md"), "");

  // In a small window the file takes the whole tab, and the tree is a step away.
  await app.page.setViewportSize({ width: 720, height: 480 });
  await looks.at(app.page, "panel-file-small");
  await app.button("Back to the files", app.file).click();
  await app.tree.waitFor();
  await looks.at(app.page, "panel-files-small");
  looks.done();
});

const printer = `#!/usr/bin/env node
require("readline").createInterface({ input: process.stdin }).on("line", (line) => {
  const { id, method } = JSON.parse(line);
  const send = (message) => console.log(JSON.stringify({ jsonrpc: "2.0", ...message }));
  const update = (update) => send({ method: "session/update", params: { sessionId: "one", update } });
  if (method === "initialize") send({ id, result: { protocolVersion: 1, agentCapabilities: {} } });
  else if (method === "session/new") send({ id, result: { sessionId: "one" } });
  else if (method === "session/prompt") {
    const text = Array.from({ length: 600 }, (_, n) => "line " + (n + 1)).join("\\n");
    update({ sessionUpdate: "tool_call", toolCallId: "t1", title: "seq 600", kind: "execute", status: "failed", rawInput: { command: "seq 600" },
      content: [{ type: "content", content: { type: "text", text } }] });
    send({ id, result: { stopReason: "end_turn" } });
  } else if (id !== undefined) send({ id, error: { code: -32601, message: "Method not found" } });
});
`;

test("terminals outlive the tab and the page, and the agent's programs stand beside them", async (t) => {
  const looks = new Looks();
  const desk = Desk.make(t, { env: { PS1: "ready> ", DESKHAND_TOKEN: "a-token-of-ours-0123456789" } });
  desk.agents([{ id: "printer", name: "Printer", command: desk.script("printer.js", printer) }]);
  fs.mkdirSync(path.join(desk.work, "below"));
  await desk.start();
  const app = await Beside.open(desk, { agent: "Demo agent", viewport: { width: 1440, height: 900 } });
  await app.composer.press("Alt+3");
  await app.panel.getByText("Nothing is running here yet").waitFor();
  await looks.at(app.page, "panel-terminal-empty");
  await app.button("New terminal", app.panel).click();
  await app.shows("ready>").waitFor();
  await until("the focus in the terminal", async () => (await app.focused()) === "Terminal 1 of “Untitled”");
  await app.types('x=kept; echo "in $(pwd), <$DESKHAND_TOKEN>"');
  await app.shows(`in ${desk.work}, <>`).waitFor();
  await looks.at(app.page, "panel-terminal");

  // All keys are the program's but two.
  await app.page.keyboard.press("Alt+2");
  await app.page.keyboard.press("Escape");
  await app.terminal.waitFor();
  await app.page.keyboard.press("Control+k");
  await app.page.getByRole("dialog").waitFor();
  await app.page.keyboard.press("Escape");
  await app.page.getByRole("dialog").waitFor({ state: "detached" });
  await app.terminal.locator("textarea").focus();
  await app.page.keyboard.press("Control+c");
  await app.page.keyboard.press("Control+Escape");
  await until("the focus on the choice", async () => (await app.focused()).startsWith("What is shown"));

  // It is there after another tab, after the page was loaded anew, and for a second page.
  await app.panel.getByRole("tab", { name: "Files" }).click();
  await app.tree.waitFor();
  await app.panel.getByRole("tab", { name: "Terminal" }).click();
  await app.shows(`in ${desk.work}, <>`).waitFor(); // it is there again
  await app.types("echo $x once");
  await app.shows("kept once").waitFor();
  await app.page.reload();
  await app.shows("kept once").waitFor();
  await app.types("echo $x twice");
  await app.shows("kept twice").waitFor();

  // A program asks its terminal where the cursor is. The answer is given once: shown anew, it is no letters at the prompt.
  await app.types("printf '\\033[6n'; read -r answer; echo \"got <$answer>\" | cat -v");
  await app.shows(/\^\[\[\d+;\d+R/).waitFor(); // the answer, as the system echoes it
  await app.page.keyboard.press("Enter");
  await app.shows(/got <\^\[\[\d+;\d+R>/).waitFor();
  await app.page.reload();
  await app.shows(/got <\^\[\[\d+;\d+R>/).waitFor();
  await app.types("echo after");
  await until("the line as it was typed", async () => /ready> echo after/.test(await app.terminal.locator(".xterm-rows").innerText()));
  assert.doesNotMatch(await app.terminal.locator(".xterm-rows").innerText(), /ready> .*R.*echo after/);

  // A second one, in a directory that the files tab shows.
  await app.panel.getByRole("tab", { name: "Files" }).click();
  await app.row("below").click({ button: "right" });
  await app.menu.getByRole("menuitem", { name: "Open a terminal here" }).click();
  await app.panel.getByRole("group", { name: /^Terminal 2 of / }).waitFor();
  await app.types("pwd");
  await app.shows(path.join(desk.work, "below")).waitFor();

  // What the agent runs stands in the same list.
  await app.turn("spawn");
  await app.choice.click();
  const list = app.page.getByRole("listbox", { name: "What is shown" });
  await list.getByText("The agent’s programs", { exact: true }).waitFor(); // strict: there is one of each
  await list.getByText("Yours", { exact: true }).waitFor();
  await looks.at(app.page, "panel-terminal-list");
  await list.getByRole("option").last().click();
  await app.panel.getByText("exit code 0").or(app.panel.getByText("Exit code 0")).first().waitFor();
  await looks.at(app.page, "panel-terminal-program");

  // One that ends by itself says so; one that runs is asked about.
  await app.choice.click();
  await list.getByRole("option", { name: /^Terminal 2/ }).click();
  await app.shows(path.join(desk.work, "below")).waitFor();
  await app.types("exit 3");
  await app.panel.getByText("The program has ended with exit code 3.").waitFor();
  await app.button("Close this terminal", app.panel).click();
  await app.panel.getByRole("group", { name: /^Terminal 2 of / }).waitFor({ state: "detached" });
  await app.choice.click();
  await list.getByRole("option", { name: /^Terminal 1/ }).click();
  await app.shows("kept twice").waitFor();
  await app.button("Close this terminal", app.panel).click();
  await app.panel.getByText("End what is running in Terminal 1?").first().waitFor();
  await looks.at(app.page, "panel-terminal-close");
  await app.button("Keep it", app.panel).click();
  await app.types("exec sleep 3600");
  await until("the program", () => desk.processes().some(({ command }) => /^sleep 3600/.test(command)));
  await app.page.setViewportSize({ width: 720, height: 480 });
  await looks.at(app.page, "panel-terminal-small");
  await app.page.setViewportSize({ width: 1440, height: 900 });
  await app.button("Close this terminal", app.panel).click();
  await app.button("End terminal", app.panel).click();
  await until("the end of the program", () => !desk.processes().some(({ command }) => /^sleep 3600/.test(command)));
  const { id } = await desk.session();
  await until("no terminal", async () => (await desk.api("GET", `/client/sessions/${id}/shells`)).items.length === 0);

  // Output that is too long for its row shows both ends; the rest opens in pages, and beside the conversation.
  await app.page.keyboard.press("Alt+N");
  await app.begin("Printer", desk.work);
  await app.turn("print");
  await app.button("… 400 lines between", app.log).click();
  await app.log.getByRole("searchbox", { name: "Find in the output" }).fill("LINE 321");
  await app.page.keyboard.press("Enter");
  await app.log.locator("mark", { hasText: "line 321" }).waitFor();
  await looks.at(app.page, "output-pages");
  const saving = app.page.waitForEvent("download");
  await app.button("Save the whole output", app.log).click();
  assert.equal((await saving).suggestedFilename(), "output.txt");
  await app.button("Show in the side panel", app.log).click();
  const whole = app.panel.getByRole("region").filter({ hasText: "line 600" });
  await whole.getByText("line 1\n").first().waitFor();
  await looks.at(app.page, "panel-output");
  await app.button("Close the output", app.panel).click();
  await whole.waitFor({ state: "detached" });

  // What is left runs no longer than the program.
  await app.button("New terminal", app.panel).click();
  await app.shows("ready>").waitFor();
  looks.done();
});
