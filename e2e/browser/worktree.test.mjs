// A conversation in a worktree of its own: made on the start screen, removed after a look at what is kept, and brought back.
import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import fs from "node:fs";
import path from "node:path";
import { test } from "node:test";
import { App, Looks } from "./app.mjs";
import { Desk, until } from "./desk.mjs";

const git = (directory, ...args) => execFileSync("git", args, {
  cwd: directory, encoding: "utf8",
  env: {
    ...process.env, GIT_CONFIG_GLOBAL: "/dev/null", GIT_CONFIG_NOSYSTEM: "1", GIT_AUTHOR_NAME: "A", GIT_AUTHOR_EMAIL: "a@localhost",
    GIT_COMMITTER_NAME: "A", GIT_COMMITTER_EMAIL: "a@localhost",
  },
}).trim();

/** A desk whose directory is a repository with one commit, and the start screen. */
async function open(t) {
  const desk = await Desk.open(t);
  fs.writeFileSync(path.join(desk.work, "code.go"), "package main\n");
  fs.writeFileSync(path.join(desk.work, ".gitignore"), "*.log\n/node_modules/\n");
  git(desk.work, "init", "--quiet", "--initial-branch=main");
  git(desk.work, "add", "--all");
  git(desk.work, "commit", "--quiet", "-m", "first");
  const app = await App.open(desk, { viewport: { width: 1440, height: 900 } });
  return { desk, app, page: app.page };
}

async function begin(app, directory) {
  const { page } = app;
  await app.choose("Directory", "Choose a directory…");
  await app.chooseDirectory(directory);
  await app.button("New worktree").click();
  await page.getByRole("button", { name: "New worktree", pressed: true }).waitFor();
}

/** Begins with a message in the worktree that is chosen. */
async function write(app, text) {
  await app.send(text);
  await app.log.waitFor();
  await app.footers.getByText("Done", { exact: true }).first().waitFor();
}

async function menu(app, item) {
  await app.sidebar.getByRole("treeitem", { selected: true }).click({ button: "right" });
  await app.page.getByRole("menuitem", { name: item }).click();
}

test("a worktree is made, changed, removed with a look at what is kept, and brought back", async (t) => {
  const { desk, app, page } = await open(t);
  const looks = new Looks();
  fs.writeFileSync(path.join(desk.work, "mine.txt"), "mine\n");
  await begin(app, desk.work);
  await page.getByText("1 file that you have not committed stays in the repository.").waitFor();
  await looks.at(page, "worktree-start");
  await write(app, "echo the login");
  const { worktree, cwd } = await desk.session();
  assert.match(worktree.branch, /^deskhand\/echo-the-login-[0-9a-f]{6}$/);
  assert.equal(path.basename(cwd), worktree.branch.replace("deskhand/", ""));
  assert.equal(git(cwd, "branch", "--show-current"), worktree.branch);
  assert.ok(!fs.existsSync(path.join(cwd, "mine.txt")));
  await app.turn("markdown");

  // Under the repository, with its branch.
  await app.sidebar.getByRole("treeitem", { name: /deskhand\/echo-the-login-[0-9a-f]{6}$/ }).waitFor();
  assert.equal(await app.sidebar.getByRole("treeitem", { level: 1 }).count(), 1);
  await app.sidebar.getByRole("treeitem", { level: 1, name: new RegExp(path.basename(desk.work)) }).waitFor();

  fs.writeFileSync(path.join(cwd, "code.go"), "package other\n");
  fs.writeFileSync(path.join(cwd, "new.txt"), "new\n");
  fs.mkdirSync(path.join(cwd, "node_modules"));
  fs.writeFileSync(path.join(cwd, "node_modules", "big"), "x".repeat(5000));
  await menu(app, "Remove worktree…");
  const dialog = page.getByRole("dialog", { name: "Remove the worktree?" });
  await dialog.getByText("Kept: 2 uncommitted files").waitFor();
  await dialog.getByText(/^Gone for good: 1 ignored file/).waitFor();
  await looks.at(page, "worktree-remove");
  for (const [width, height] of [[1024, 700], [720, 480]]) {
    await page.setViewportSize({ width, height });
    await looks.at(page, `worktree-remove-${width}`);
  }
  await page.setViewportSize({ width: 1440, height: 900 });
  await page.keyboard.press("Escape");
  await dialog.waitFor({ state: "detached" });
  assert.ok(fs.existsSync(cwd));

  await menu(app, "Remove worktree…");
  await app.button("Remove it", dialog).click();
  await page.getByText("Worktree removed. 2 files are kept.").waitFor();
  assert.ok(!fs.existsSync(cwd));
  assert.equal(git(desk.work, "show", `refs/deskhand/kept/${(await desk.session()).id}:new.txt`), "new");
  await looks.at(page, "worktree-removed");

  await menu(app, "Bring the worktree back");
  await until("it to be back", () => fs.existsSync(path.join(cwd, "new.txt")));
  await page.getByText("The worktree is back, as it was").waitFor();
  await page.getByText("is missing. The conversation is kept").waitFor({ state: "detached" }); // nothing is sent before the page knows
  assert.equal(fs.readFileSync(path.join(cwd, "code.go"), "utf8"), "package other\n");
  await app.turn("markdown");
  looks.done();
});

test("a conversation is deleted alone, or with its worktree; elsewhere there is none to be had", async (t) => {
  const { desk, app, page } = await open(t);
  await begin(app, desk.work);
  await write(app, "echo");
  const { cwd, worktree } = await desk.session();
  // Also where the part of the page that asks comes after the click.
  const parts = /\/act(ion)?s-[^/]*\.js/; // worktree/acts.ts
  let release;
  const released = new Promise((done) => (release = done)), part = page.waitForRequest(parts);
  await page.route(parts, (route) => released.then(() => route.continue()));
  await page.reload();
  await menu(app, /^Delete/);
  await part;
  release();
  const dialog = page.getByRole("dialog", { name: "Delete the conversation and its worktree?" });
  await dialog.getByText("Everything in it is committed.").waitFor();
  await app.holds(5_000);
  await app.button("Delete only the conversation", dialog).click();
  await app.sidebar.getByRole("treeitem", { level: 2 }).waitFor({ state: "detached" });
  await app.button("Undo").click();
  await app.sidebar.getByRole("treeitem", { level: 2 }).click();
  assert.ok(fs.existsSync(cwd));
  await app.composer.waitFor();
  // Where no branch is checked out it does not say that the directory is gone.
  git(cwd, "checkout", "--quiet", "--detach");
  await menu(app, "Remove worktree…");
  const removal = page.getByRole("dialog", { name: "Remove the worktree?" });
  await removal.getByText("No branch is checked out. The commits that no branch has are kept.").waitFor();
  await page.keyboard.press("Escape");
  git(cwd, "checkout", "--quiet", worktree.branch);
  await menu(app, /^Delete/);
  await dialog.getByText(/has no work on it, and is removed\.$/).waitFor();
  await app.button("Remove it and delete", dialog).click();
  await until("both to be gone", async () => !fs.existsSync(cwd) && (await desk.api("GET", "/client/sessions")).items.length === 0);
  assert.equal(git(desk.work, "branch", "--list", "deskhand/*"), "");

  // A directory that is in no repository.
  const plain = path.join(path.dirname(desk.work), "plain");
  fs.mkdirSync(plain);
  const asked = page.waitForResponse((answer) => answer.url().includes("/client/worktrees/plan") && answer.status() === 409);
  await app.choose("Directory", "Choose a directory…");
  await app.chooseDirectory(plain);
  await asked;
  assert.equal(await app.button("New worktree").count(), 0);
});
