// A new worktree begins with a chosen branch, and is set up before the first prompt: what runs is shown and approved, a failure says so and
// holds the prompt, and the commands of the project run in terminals.
import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import fs from "node:fs";
import path from "node:path";
import { test } from "node:test";
import { App, Looks } from "./app.mjs";
import { Desk, until } from "./desk.mjs";

test("a worktree from a chosen branch is set up before its first prompt", async (t) => {
  const looks = new Looks();
  const desk = Desk.make(t);
  const git = (...args) => execFileSync("git", ["-C", desk.work, ...args], { encoding: "utf8", env: { ...process.env, HOME: desk.home, GIT_CONFIG_NOSYSTEM: "1" } }).trimEnd();
  git("init", "-q", "-b", "main");
  fs.writeFileSync(path.join(desk.home, ".gitconfig"), "[user]\n\tname = Ada\n\temail = ada@example.org\n");
  const put = (name, text) => {
    fs.mkdirSync(path.dirname(path.join(desk.work, name)), { recursive: true });
    fs.writeFileSync(path.join(desk.work, name), text);
  };
  put(".gitignore", ".env\nready\n");
  put(".deskhand/project.json", JSON.stringify({
    setup: ["echo Installing for port $DESKHAND_PORT", "test -e ready || { echo the database does not answer >&2; exit 7; }"],
    copy: [".env"], test: "echo all tests pass", open: "http://localhost:${DESKHAND_PORT}", ports: { from: 24100, to: 24199 },
  }, undefined, 2));
  git("add", ".");
  git("commit", "-q", "-m", "Begin");
  git("checkout", "-q", "-b", "release");
  git("commit", "-q", "--allow-empty", "-m", "Release");
  git("checkout", "-q", "main");
  put(".env", "KEY=1\n");
  await desk.start();
  const app = await App.open(desk, { viewport: { width: 1280, height: 860 } });
  const page = app.page;

  // The base.
  await app.choose("Directory", "Choose a directory…");
  await app.chooseDirectory(desk.work);
  await app.button("New worktree").click();
  await page.getByRole("button", { name: "Base branch: main" }).click();
  const search = page.getByRole("combobox", { name: "Search branches, or a commit" });
  await looks.at(page, "setup-base");
  await search.fill("rel");
  await search.press("Enter");
  await page.getByRole("button", { name: "Base branch: release" }).waitFor();
  await app.send("markdown");

  // What would run.
  await page.getByText("test -e ready").first().waitFor();
  await looks.at(page, "setup-approval");
  const session = await desk.session();
  assert.equal(session.worktree.baseBranch, "release");
  assert.equal(execFileSync("git", ["-C", session.cwd, "log", "-1", "--format=%s"], { encoding: "utf8" }).trim(), "Release");
  await page.getByRole("button", { name: "Approve and start" }).click();

  // The failure.
  const row = page.getByRole("region", { name: "Set-up of the worktree" });
  await row.getByText("ended with 7").waitFor();
  await row.getByLabel("Output of the set-up").getByText("the database does not answer").waitFor();
  await looks.at(page, "setup-failed");
  assert.equal(fs.readFileSync(path.join(session.cwd, ".env"), "utf8"), "KEY=1\n");

  // Who is elsewhere sees it, too: in the list, and in the inbox, where it can be run again.
  await page.keyboard.press("Control+n");
  await row.waitFor({ state: "detached" });
  const listed = app.sidebar.getByRole("treeitem", { name: /waiting for you/ });
  await listed.waitFor();
  await app.sidebar.getByText("Worktree set-up failed").waitFor();
  await app.sidebar.getByLabel("1 waiting for you").click();
  await page.getByRole("option", { name: /Worktree set-up failed/, selected: true }).waitFor();
  await row.getByText("ended with 7").waitFor();
  await row.getByRole("button", { name: "Go on without" }).waitFor();
  await looks.at(page, "setup-inbox");
  assert.match(await page.title(), /^\(1\) /);
  fs.writeFileSync(path.join(session.cwd, "ready"), "");
  await row.getByRole("button", { name: "Hide details" }).click();
  await row.getByRole("button", { name: "Show details" }).click();
  await until("an offer to run it again", async () => {
    for (const name of ["Approve and run", "Run again"]) {
      const button = row.getByRole("button", { name });
      if (await button.isVisible()) {
        await button.click();
        return true;
      }
    }
    return false;
  });
  await page.getByText("Nothing is waiting for you").waitFor();
  await until("the first answer", async () => (await desk.session()).setup?.state === "done" && (await desk.session()).turn === undefined);

  // The commands.
  await app.sidebar.getByRole("treeitem", { name: /markdown/i }).first().click();
  await app.sidebar.getByRole("treeitem", { selected: true }).click({ button: "right" });
  await page.getByRole("menuitem", { name: "Set-up and commands" }).click();
  await row.getByText("The worktree is set up").waitFor();
  await row.getByLabel("Output of the set-up").getByText("Installing for port 24101").waitFor();
  await row.getByRole("button", { name: "Run tests" }).click();
  await row.getByText("echo all tests pass").first().waitFor();
  await looks.at(page, "setup-commands");
  await row.getByRole("button", { name: "Approve and run" }).click();
  await until("the tests in a terminal", async () => (await desk.api("GET", `/client/sessions/${session.id}/shells`)).items.some((one) => one.name === "test"));
  looks.done();
});
