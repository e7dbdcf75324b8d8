// One prompt for several agents: from the composer to the answers beside each other, their approvals in one place, the tests of the project in
// each worktree, files of one taken into another, and one of them taken, with what the other has not committed kept.
import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import fs from "node:fs";
import path from "node:path";
import { test } from "node:test";
import { App, Looks } from "./app.mjs";
import { Desk, until } from "./desk.mjs";

/** A desk whose directory is a repository with a project, and the start screen. */
async function open(t, { agents } = {}) {
  const desk = Desk.make(t);
  if (agents) desk.agents(agents(desk));
  const git = (...args) => execFileSync("git", ["-C", desk.work, ...args], { encoding: "utf8", env: { ...process.env, HOME: desk.home, GIT_CONFIG_NOSYSTEM: "1" } }).trimEnd();
  git("init", "-q", "-b", "main");
  fs.writeFileSync(path.join(desk.home, ".gitconfig"), "[user]\n\tname = Ada\n\temail = ada@example.org\n");
  fs.mkdirSync(path.join(desk.work, ".deskhand"));
  fs.writeFileSync(path.join(desk.work, ".deskhand", "project.json"), JSON.stringify({ test: "echo looking at price.go; grep -q discount price.go" }));
  fs.writeFileSync(path.join(desk.work, "price.go"), "package price\n\nfunc Sum(prices []int) (sum int) {\n\tfor _, p := range prices {\n\t\tsum += p\n\t}\n\treturn sum\n}\n");
  fs.writeFileSync(path.join(desk.work, ".gitignore"), "*.log\n");
  git("add", ".");
  git("commit", "-q", "-m", "Begin");
  await desk.start();
  const app = await App.open(desk, { viewport: { width: 1440, height: 900 } });
  await app.choose("Directory", "Choose a directory…");
  await app.chooseDirectory(desk.work);
  return { desk, app, page: app.page, git };
}

/** The parts of the comparison's screen. */
const column = (page, name) => page.getByRole("region", { name, exact: true });

test("one prompt goes to two agents, and what one of them has made is taken", async (t) => {
  const { desk, app, page, git } = await open(t);
  const looks = new Looks();

  // Two clicks: another agent, and the button that sends.
  await app.button("Compare with another agent").click();
  await page.getByText("Each agent works in a worktree of its own, from main.").waitFor();
  await page.getByRole("button", { name: "New worktree", pressed: true, disabled: true }).waitFor();
  await app.composer.fill("permission");
  await looks.at(page, "compare-start");
  await app.button("Send to 2 agents").click();

  // Both ask, in one inbox and on the screen.
  const [first, second] = [column(page, "Demo agent"), column(page, "Demo agent 2")];
  await first.getByText("Allow once").waitFor();
  await second.getByText("Allow once").waitFor();
  await looks.at(page, "compare-asks");
  await page.setViewportSize({ width: 720, height: 480 });
  await looks.at(page, "compare-asks-720");
  await page.setViewportSize({ width: 1440, height: 900 });
  const [comparison] = (await desk.api("GET", "/client/comparisons")).items;
  assert.equal(comparison.base, "main");
  const [a, b] = await Promise.all(comparison.members.map(async ({ session }) => desk.api("GET", `/client/sessions/${session}`)));
  await app.sidebar.getByRole("button", { name: /^Inbox/ }).click();
  const inbox = page.getByRole("listbox");
  await inbox.getByText("Demo agent 2").waitFor();
  assert.equal(await inbox.getByRole("option").count(), 2);
  await looks.at(page, "compare-inbox");

  // The list has one row for both, which opens into them by keys.
  const row = app.sidebar.getByRole("treeitem", { level: 2 });
  assert.equal(await row.count(), 1);
  assert.equal(await row.getAttribute("aria-expanded"), "false");
  await row.focus();
  await page.keyboard.press("ArrowRight");
  const members = app.sidebar.getByRole("treeitem", { level: 3 });
  await until("both members", async () => (await members.count()) === 2);
  await page.keyboard.press("ArrowDown");
  assert.match(await page.evaluate(() => document.activeElement.getAttribute("aria-label")), /^Demo agent, waiting for you/);
  await page.keyboard.press("ArrowLeft");
  await page.keyboard.press("ArrowLeft");
  await until("the closed row", async () => (await members.count()) === 0);
  await page.keyboard.press("ArrowRight");
  await looks.at(page, "compare-sidebar");
  await page.keyboard.press("Enter");

  // The answers are given where they are compared.
  for (const one of [first, second]) {
    await one.getByText("Allow once").waitFor();
    await app.unguarded();
    await one.getByRole("button", { name: "Allow once" }).click();
    await one.getByText("Done", { exact: true }).waitFor();
  }
  const list = page.getByRole("region", { name: "Files" });
  await list.getByRole("button", { name: "deskhand-demo.md" }).waitFor();
  fs.writeFileSync(path.join(a.cwd, "price.go"), fs.readFileSync(path.join(a.cwd, "price.go"), "utf8").replace("sum int) {", "sum int) { // of all"));
  fs.writeFileSync(path.join(b.cwd, "price.go"), fs.readFileSync(path.join(b.cwd, "price.go"), "utf8").replace("return sum", "return sum - discount(sum)"));
  fs.writeFileSync(path.join(b.cwd, "discount.go"), "package price\n\nfunc discount(sum int) int { return sum / 10 }\n");
  fs.writeFileSync(path.join(b.cwd, "build.log"), "ignored\n");
  await app.button("Refresh").click();
  await list.getByRole("button", { name: "discount.go" }).waitFor();

  // The tests of the project, once it is seen what they are.
  await app.button("Run tests").click();
  await page.getByText("echo looking at price.go").first().waitFor();
  await looks.at(page, "compare-approval");
  await app.button("Approve and run").click();
  await first.getByText("Tests failed with 1").waitFor();
  await second.getByText("Tests passed").waitFor();
  await second.getByRole("button", { name: /Tests passed/ }).click();
  await second.getByLabel("Output of the tests of Demo agent 2").getByText("looking at price.go").waitFor();
  await list.getByRole("button", { name: "price.go", exact: true }).click();
  await page.getByText("return sum - discount(sum)").first().waitFor();
  await page.getByText("of all").first().waitFor();
  await looks.at(page, "compare");

  // Files of one are taken into the other, and given back.
  await list.getByRole("checkbox", { name: "Choose price.go of Demo agent 2" }).check();
  await list.getByRole("checkbox", { name: "Choose discount.go of Demo agent 2" }).check();
  await looks.at(page, "compare-chosen");
  await list.getByRole("button", { name: "Take 2 files into Demo agent" }).click();
  await page.getByText("2 files of Demo agent are now as in Demo agent 2").waitFor();
  assert.equal(fs.readFileSync(path.join(a.cwd, "price.go"), "utf8"), fs.readFileSync(path.join(b.cwd, "price.go"), "utf8"));
  await looks.at(page, "compare-took");
  await app.button("Undo").click();
  await page.getByText("2 files of Demo agent are as before").waitFor();
  assert.match(fs.readFileSync(path.join(a.cwd, "price.go"), "utf8"), /of all/);
  assert.ok(!fs.existsSync(path.join(a.cwd, "discount.go")));
  for (const [width, height] of [[1024, 700], [720, 480]]) {
    await page.setViewportSize({ width, height });
    await looks.at(page, `compare-${width}`);
  }
  await list.scrollIntoViewIfNeeded();
  await looks.at(page, "compare-720-files");
  await page.setViewportSize({ width: 1440, height: 900 });

  // One is taken: the other's worktree goes, and what is not committed there is kept.
  await app.button("Take this one: Demo agent").click();
  const dialog = page.getByRole("dialog", { name: "Take Demo agent?" });
  await dialog.getByText(/^Kept: 3 uncommitted files/).waitFor();
  await dialog.getByText(/^Gone for good: 1 ignored file/).waitFor();
  await looks.at(page, "compare-take");
  await app.button("Take Demo agent", dialog).click();
  await app.log.waitFor();
  const panel = page.getByRole("complementary", { name: "Side panel" });
  await panel.getByText("price.go").first().waitFor();
  assert.ok(!fs.existsSync(b.cwd));
  assert.equal(git("show", `refs/deskhand/kept/${b.id}:discount.go`), "package price\n\nfunc discount(sum int) int { return sum / 10 }");
  assert.ok((await desk.api("GET", `/client/sessions/${b.id}`)).archivedAt);
  await until("an ordinary row", async () => (await app.sidebar.getByRole("treeitem", { level: 3 }).count()) === 0);
  await until("no message", async () => {
    const message = app.button("Dismiss").first(); // one may go by itself meanwhile
    if (await message.isVisible()) await message.click({ timeout: 1000 }).catch(() => undefined);
    return (await app.button("Dismiss").count()) === 0;
  });
  await looks.at(page, "compare-taken");

  // Back to the comparison, from the head of the conversation.
  await page.getByRole("button", { name: /^1 of 2 agents with this prompt/ }).click();
  await first.getByText("Taken", { exact: true }).waitFor();
  await second.getByText("Not taken.").waitFor();
  await looks.at(page, "compare-over");
  looks.done();
});

test("agents with models of their own, one that fails, and one that is taken while the others work", async (t) => {
  const { desk, app, page } = await open(t, { agents: (desk) => [{ id: "broken", name: "Broken", command: desk.script("broken", "#!/bin/sh\necho no account >&2\nexit 3\n") }] });
  const looks = new Looks();
  await app.write("markdown", { agent: "Demo agent" }); // from here on it is known which models there are
  await app.footers.getByText("Done", { exact: true }).first().waitFor();
  await app.button("New conversation").click();

  await app.choose("Agent", /^Demo agent/);
  for (const n of [2, 3]) await app.button(n === 2 ? "Compare with another agent" : "Add another agent").click();
  await app.choose("Agent 3", /^Broken/);
  await app.choose("Agent 2", /^Demo agent/);
  await app.choose("Model of agent 2", /^Demo Small/);
  await app.composer.fill("slow\n\nTell me about the price, in as many words as you like.");
  await page.reload(); // nothing of it is lost before it is sent
  await app.button("New conversation").click();
  await page.getByRole("button", { name: "Model of agent 2: Demo Small" }).waitFor();
  await looks.at(page, "compare-start-three");
  await app.button("Send to 3 agents").click();
  const [first, small, broken] = ["Demo agent", "Demo agent · demo-small", "Broken"].map((name) => column(page, name));
  await broken.getByText("Failed", { exact: true }).waitFor();
  for (const one of [first, small]) await one.getByText("Working", { exact: true }).waitFor();
  await app.button("Show the prompt").click();
  await page.getByText("in as many words as you like").last().waitFor();
  await looks.at(page, "compare-working");
  await app.button("Add agent").click();
  await page.getByRole("menuitem", { name: /^Demo agent/ }).click();
  await column(page, "Demo agent 2").getByText("Working", { exact: true }).waitFor();
  await looks.at(page, "compare-four");
  for (const [width, height] of [[1024, 700], [720, 480]]) {
    await page.setViewportSize({ width, height });
    await looks.at(page, `compare-four-${width}`);
  }
  await page.setViewportSize({ width: 1440, height: 900 });

  await app.button("Take this one: Demo agent").click();
  const dialog = page.getByRole("dialog", { name: "Take Demo agent?" });
  await dialog.getByText("Everything in it is committed.").nth(2).waitFor();
  assert.equal(await dialog.getByText("It still works, and is stopped.").count(), 2);
  await looks.at(page, "compare-take-working");
  await app.button("Take Demo agent", dialog).click();
  await page.getByText("Demo agent is taken. What the others have not committed is kept.").waitFor();
  await app.log.waitFor();
  const [comparison] = (await desk.api("GET", "/client/comparisons")).items;
  for (const { session } of comparison.members.slice(1)) {
    const { worktree, archivedAt, turn } = await desk.api("GET", `/client/sessions/${session}`);
    assert.deepEqual([worktree.state, archivedAt !== undefined, turn], ["removed", true, undefined]);
  }
  assert.ok((await desk.api("GET", `/client/sessions/${comparison.taken}`)).turn, "the agent that was taken works on");
  looks.done();
});

test("long answers are unfolded, and a comparison is ungrouped by the keyboard", async (t) => {
  const { desk, app, page } = await open(t);
  const looks = new Looks();
  const { id } = await desk.api("POST", "/client/comparisons", { cwd: desk.work, message: "markdown", members: [{ agent: "mock" }, { agent: "mock" }] });
  const row = app.sidebar.getByRole("treeitem", { level: 2 });
  await app.sidebar.getByRole("treeitem", { name: "markdown, 2 agents" }).focus(); // once the page knows of both
  await page.keyboard.press("Enter");
  const first = column(page, "Demo agent");
  await first.getByText("Done", { exact: true }).waitFor();
  await first.getByRole("button", { name: "Show all" }).click();
  await first.getByRole("button", { name: "Show less" }).waitFor();
  await looks.at(page, "compare-long");
  await first.getByRole("button", { name: "Show less" }).click();
  await looks.at(page, "compare-clamped");
  await until("what was looked at to be read", async () => (await desk.api("GET", "/client/sessions")).items.every(({ unread }) => !unread));

  await row.focus();
  await page.keyboard.press("Shift+F10");
  await page.getByRole("menuitem", { name: "Ungroup" }).click();
  await page.getByText("Ungrouped. The conversations stay.").waitFor();
  await until("two rows", async () => (await row.count()) === 2);
  await app.log.waitFor();
  assert.equal((await desk.call("GET", `/client/comparisons/${id}`)).status, 404);
  looks.done();
});
