// The changes of an agent in the side panel: kept, reverted, commented on, undone; on the disk, with git's help.
import assert from "node:assert/strict";
import fs from "node:fs";
import path from "node:path";
import { test } from "node:test";
import { App, Looks } from "./app.mjs";
import { Desk, until } from "./desk.mjs";

const demoFile = "deskhand-demo.md";

/** A program as an agent finds it: long enough for two places that change by themselves. */
const before = [
  "package main", "", "import \"fmt\"", "", "// greet says hello.", "func greet(name string) {", "\tfmt.Println(\"hello\", name)", "}", "",
  ...Array.from({ length: 20 }, (_, n) => `// line ${n}`), "",
  "func main() {", "\tgreet(\"world\")", "}", "",
].join("\n");
const first = before.replace("\"hello\", name", "\"good morning\", name");
const after = first.replace("greet(\"world\")", "greet(\"everybody\")\n\tgreet(\"nobody\")");

/** A turn in which files are changed: the demo agent asks, and writes its own when it is answered; the rest is done meanwhile. */
async function changing(app, work, prompt = "permission") {
  await app.send(prompt);
  await app.request.getByText("Allow once").waitFor();
  work();
  await app.unguarded();
  await app.button("Allow once", app.request).click();
  const footer = app.footers.last();
  await footer.getByText("Done", { exact: true }).waitFor();
  await footer.getByRole("button", { name: /\d+ files?/ }).waitFor();
  return footer;
}

async function open(t, files = {}) {
  const desk = await Desk.open(t);
  const write = (name, text) => {
    fs.mkdirSync(path.dirname(path.join(desk.work, name)), { recursive: true });
    fs.writeFileSync(path.join(desk.work, name), text);
  };
  const read = (name) => fs.readFileSync(path.join(desk.work, name), "utf8");
  const there = (name) => fs.existsSync(path.join(desk.work, name));
  for (const [name, text] of Object.entries(files)) write(name, text);
  const app = await App.open(desk, { agent: "Demo agent", viewport: { width: 1440, height: 900 } });
  const panel = app.page.getByRole("complementary", { name: "Side panel" });
  return { desk, app, page: app.page, panel, write, read, there };
}

test("a turn is looked through by keys: kept, taken back, commented on", async (t) => {
  const { desk, app, page, panel, write, read, there } = await open(t, { "cmd/main.go": before, "notes.txt": "one\ntwo\n" });
  const footer = await changing(app, () => {
    write("cmd/main.go", after);
    write("notes.txt", "one\ntwo\nthree\n");
    write("cmd/new file.go", "package main\n");
  });
  assert.match(await footer.innerText(), /Done\s+4 files\s+\+\d+\s+−2\s/);

  await footer.getByRole("button", { name: /4 files/ }).click();
  const tree = panel.getByRole("tree", { name: "Changed files" });
  await tree.getByRole("treeitem", { name: /^main\.go \+3 −2, modified/ }).click();
  await panel.getByText("Lines 4–10").waitFor();
  // The colours are those of the language.
  await panel.locator(".tok-keyword", { hasText: "func" }).first().waitFor();

  await page.keyboard.press("]"); // from the list to the second change
  await panel.getByRole("group", { name: /^Change 2 of 2/ }).waitFor();
  await page.keyboard.press("n");
  await until("the second change to be taken back", () => read("cmd/main.go") === first);
  await panel.getByText("Discarded a change in cmd/main.go").waitFor();
  await tree.getByRole("treeitem", { name: /^main\.go/ }).click(); // the keys had gone on to the next file
  await panel.getByRole("group", { name: /^Change 2 of 2.*Discarded/ }).waitFor();

  // And brought back.
  await panel.getByRole("button", { name: "Undo", exact: true }).click();
  await until("it to be there again", () => read("cmd/main.go") === after);
  await panel.getByRole("group", { name: /^Change 2 of 2.*removed\.\s*$/ }).waitFor();

  await tree.getByRole("treeitem", { name: /^main\.go/ }).press("ArrowRight");
  await page.keyboard.press("y");
  await panel.getByText("1 of 5 changes kept").waitFor();
  await panel.locator("[data-hunk='1'].here").waitFor(); // a kept hunk is shown at once, and the selection moves on after the server's answer
  await page.keyboard.press("c");
  const field = panel.getByRole("textbox", { name: /^Comment on cmd\/main\.go, line \d+/ });
  await field.pressSequentially("Why everybody, and [not] you?");
  await field.press("Enter");
  await panel.getByText("1 comment", { exact: true }).waitFor();

  // All marks are remembered.
  await page.reload();
  await panel.getByText("1 of 5 changes kept").waitFor();
  await panel.getByText("1 comment", { exact: true }).waitFor();
  await tree.getByRole("treeitem", { name: /^new file\.go/ }).focus();
  await page.keyboard.press("ArrowDown");
  await page.keyboard.press("ArrowUp");
  await page.keyboard.press("n");
  await until("the new file to go", () => !there("cmd/new file.go"));

  await panel.getByRole("button", { name: "Send as one message" }).click();
  await app.log.getByText("Why everybody, and [not] you?").first().waitFor();
  const { id } = await desk.session();
  const said = (await desk.entries(id)).filter((entry) => entry.kind === "user").at(-1).text;
  assert.match(said, /^A comment on your changes:\n\n`cmd\/main\.go`, line \d+.*:\n\n```diff\n[-+]\tgreet\(.*\n```\n\nWhy everybody, and \[not\] you\?$/);
});

test("a turn is undone after a look at what that does, and the undo as well", async (t) => {
  const { app, page, panel, write, read, there } = await open(t, { "a.txt": "a\n", "b.txt": "b\n" });
  const footer = await changing(app, () => {
    write("a.txt", "A\n");
    write("b.txt", "B\n");
  });
  write("b.txt", "mine\n"); // a person, after the turn
  await footer.getByRole("button", { name: "Revert turn" }).click();
  const dialog = page.getByRole("dialog", { name: "Revert this turn?" });
  await dialog.getByRole("button", { name: /^a\.txt Will be restored/ }).click();
  await dialog.getByRole("list", { name: "Changes to a.txt" }).getByText("A", { exact: true }).waitFor();
  await dialog.getByRole("button", { name: new RegExp(`^${demoFile} Will be deleted`) }).waitFor();
  await dialog.getByRole("button", { name: /^b\.txt Changed after the turn/ }).waitFor();
  assert.equal(read("a.txt"), "A\n", "the look changed something");
  await app.holds(5_000);
  await dialog.getByRole("button", { name: "Undo 2 files" }).click();
  await dialog.waitFor({ state: "detached" });
  assert.equal(read("a.txt"), "a\n");
  assert.equal(read("b.txt"), "mine\n");
  assert.ok(!there(demoFile));
  // Not everything: the remaining changes can still be undone, and the reverted changes can be restored.
  await footer.getByRole("button", { name: "Revert turn" }).waitFor();
  await footer.getByRole("button", { name: "Redo turn" }).waitFor();
  await page.getByText("Turn reverted: 2 files restored").first().waitFor();
  await page.getByRole("button", { name: "Undo", exact: true }).first().click();
  await until("the turn to be there again", () => read("a.txt") === "A\n" && there(demoFile));
  assert.equal(read("b.txt"), "mine\n");

  // And everything, including a person's later edits, by keys.
  await footer.getByRole("button", { name: "Revert turn" }).focus();
  await page.keyboard.press("Control+z");
  await dialog.getByRole("checkbox", { name: "Also restore what changed after the turn" }).check();
  await dialog.getByRole("button", { name: "Undo 3 files" }).click();
  await dialog.waitFor({ state: "detached" });
  assert.equal(read("b.txt"), "b\n");
  await footer.getByText("reverted", { exact: true }).waitFor();
  await page.reload(); // the way back is no matter of the page
  await footer.getByText("reverted", { exact: true }).waitFor();
  await footer.getByRole("button", { name: "Redo turn" }).click();
  await until("what the person wrote to be there again", () => read("b.txt") === "mine\n" && read("a.txt") === "A\n");
  await footer.getByRole("button", { name: "Revert turn" }).waitFor();
  assert.equal(await panel.count(), 0, "a panel that nobody asked for");
});

test("of three hundred files and a file of ten thousand lines only a part is in the page", async (t) => {
  const { app, page, panel, write } = await open(t);
  const footer = await changing(app, () => {
    for (let n = 0; n < 300; n++) write(`src/part${n % 10}/file${n}.ts`, `export const n = ${n};\n`);
    write("src/long.ts", Array.from({ length: 10_000 }, (_, n) => `call(${n});`).join("\n"));
  });
  assert.match(await footer.innerText(), /302 files/);
  await footer.getByRole("button", { name: /302 files/ }).click();
  const tree = panel.getByRole("tree", { name: "Changed files" });
  await tree.getByRole("treeitem").first().focus();
  for (let n = 0; n < 50; n++) await page.keyboard.press("ArrowDown");
  const nodes = await page.evaluate(() => document.querySelectorAll("*").length);
  assert.ok(nodes < 6_000, `${nodes} elements`);

  // Lines are loaded while scrolling, and further lines on request.
  await page.keyboard.press("End");
  await page.keyboard.press("ArrowUp");
  const region = panel.getByRole("region", { name: "Changes to src/long.ts" });
  await region.locator("[data-row=\"250\"]").waitFor();
  assert.ok(await region.locator("[data-row]").count() <= 600);
  const more = region.getByRole("button", { name: /^Show more: / });
  await until("all that come by themselves", async () => {
    await region.evaluate((element) => (element.scrollTop = element.scrollHeight));
    return await more.count() === 1;
  });
  assert.ok(await region.locator("[data-row]").count() <= 2_000);
});

test("how it looks", async (t) => {
  const { app, page, panel, write } = await open(t, { "cmd/main.go": before, "docs/guide.md": "# Guide\n", "web/old.css": "a {}\n" });
  const looks = new Looks();
  await page.keyboard.press("Alt+1");
  await panel.getByText("Nothing changed yet.").waitFor();
  await looks.at(page, "changes-empty");
  const footer = await changing(app, () => {
    write("cmd/main.go", after);
    write("docs/guide.md", "# Guide\n\nIt is short.\n");
    write(`web/${"a-very-long-name-".repeat(10)}.ts`, "export const hidden = '\u202e';\n");
    write("web/logo.png", Buffer.from([137, 80, 78, 71, 0, 1, 2, 3]));
  }, "Greet everybody in the morning, after you have asked for permission");
  await footer.getByRole("button", { name: /files/ }).click();
  await panel.getByRole("treeitem", { name: /^main\.go/ }).click();
  await panel.locator(".tok-keyword").first().waitFor();
  await page.keyboard.press("ArrowRight");
  await page.keyboard.press("c");
  await page.keyboard.type("Why everybody?");
  await page.keyboard.press("Enter");
  await page.keyboard.press("y");
  await looks.at(page, "changes-review");
  await panel.getByRole("button", { name: "Two columns" }).click();
  await panel.getByRole("button", { name: "Make the side panel smaller" }).waitFor(); // two columns need the room
  await panel.getByRole("treeitem", { name: /^guide\.md/ }).click();
  await panel.getByRole("treeitem", { name: /^main\.go/ }).click();
  await looks.at(page, "changes-wide");
  await panel.getByRole("button", { name: "Make the side panel smaller" }).click();
  // A failed request leaves the shown changes.
  const since = /\/changes\?since=start$/;
  await page.route(since, (route) => route.fulfill({ status: 500, contentType: "application/problem+json", body: "{\"status\":500}" }));
  const choose = async () => {
    await panel.getByRole("button", { name: /^Changes of/ }).click();
    await page.getByRole("option", { name: /^Since the start/ }).click();
  };
  await choose();
  await panel.getByRole("alert").waitFor();
  await panel.getByRole("button", { name: /^Changes of: Turn of/ }).waitFor();
  await looks.at(page, "changes-failed");
  await page.unroute(since);
  await panel.getByRole("button", { name: "Try again" }).click();
  await panel.getByRole("button", { name: "Changes of: Since the start" }).waitFor();
  assert.equal(await panel.getByRole("alert").count(), 0, "an error that is over");
  write("docs/guide.md", "# Guide\n\nIt is short, and mine.\n");
  await changing(app, () => write("docs/guide.md", "# Guide\n\nIt is short, and ours.\n"));
  await panel.getByRole("treeitem", { name: /^guide\.md/ }).click();
  await panel.getByText("also changed between turns").waitFor();
  await looks.at(page, "changes-start");
  await panel.getByRole("treeitem", { name: /^guide\.md .*, modified/ }).waitFor();
  assert.equal(await panel.getByRole("button", { name: "Revert turn" }).count(), 0, "a turn to undo where none is chosen");
  await page.setViewportSize({ width: 720, height: 480 });
  await looks.at(page, "changes-small");
  await page.setViewportSize({ width: 1440, height: 900 });
  await app.footers.first().getByRole("button", { name: "Revert turn" }).click();
  const dialog = page.getByRole("dialog", { name: "Revert this turn?" });
  await dialog.getByRole("button", { name: /main\.go/ }).click();
  await dialog.locator(".tok-keyword").first().waitFor();
  await looks.at(page, "changes-undo");
  looks.done();
});
