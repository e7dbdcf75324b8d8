// The branch of a worktree is compared with its base, merged into it, brought up to date, and its conflicts are resolved.
import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import fs from "node:fs";
import path from "node:path";
import { test } from "node:test";
import { App, Looks } from "./app.mjs";
import { Desk } from "./desk.mjs";

test("a branch is merged into its base, and conflicts go to the agent", async (t) => {
  const looks = new Looks();
  const desk = Desk.make(t);
  const env = { ...process.env, HOME: desk.home, GIT_CONFIG_NOSYSTEM: "1" };
  const at = (dir) => (...args) => execFileSync("git", ["-C", dir, ...args], { encoding: "utf8", env }).trimEnd();
  const git = at(desk.work);
  git("init", "-q", "-b", "main");
  fs.writeFileSync(path.join(desk.home, ".gitconfig"), "[user]\n\tname = Ada\n\temail = ada@example.org\n");
  fs.writeFileSync(path.join(desk.work, "total.go"), "package main\n\nfunc total() int { return 1 }\n");
  git("add", ".");
  git("commit", "-q", "-m", "Begin");
  const tree = path.join(desk.home, "tree");
  git("worktree", "add", "-q", "-b", "total", tree);
  const here = at(tree);
  await desk.start();
  const app = await App.open(desk, { viewport: { width: 1440, height: 900 } });
  const panel = app.page.getByRole("complementary", { name: "Side panel" });
  await app.begin("Demo agent", tree);
  await desk.api("PATCH", `/client/sessions/${(await desk.session()).id}`, { title: "Sum up all rows. Now it is one." });

  // What the branch brings: a commit, and a file that is in none.
  fs.writeFileSync(path.join(tree, "total.go"), "package main\n\nfunc total() int { return 2 }\n");
  here("commit", "-q", "-a", "-m", "Two");
  fs.writeFileSync(path.join(tree, "notes.txt"), "not yet\n");
  await app.button("Branch total").click();
  const files = panel.getByRole("list", { name: "Files that differ from main" });
  await files.getByRole("button", { name: "total.go" }).click();
  await files.getByText("return 2").first().waitFor();
  await panel.getByText("1 commit ahead").waitFor();
  await panel.getByText("1 file is not committed. A merge takes commits only.").waitFor();
  await looks.at(app.page, "merging");

  // What is not committed in the base's own directory is in the way, and comes back.
  fs.writeFileSync(path.join(desk.work, "total.go"), "// Totals.\npackage main\n\nfunc total() int { return 1 }\n");
  await panel.getByRole("textbox", { name: "Merge message" }).fill("Sum up");
  await panel.getByRole("button", { name: "Merge into main" }).click();
  await panel.getByText(/are in the way: total.go/).waitFor();
  await looks.at(app.page, "merging-in-the-way");
  await panel.getByRole("button", { name: "Stash them and merge" }).click();
  await app.page.getByText("Merged into main", { exact: true }).waitFor();
  assert.equal(fs.readFileSync(path.join(desk.work, "total.go"), "utf8"), "// Totals.\npackage main\n\nfunc total() int { return 2 }\n");
  assert.equal(git("log", "-1", "--format=%s by %an, %P"), `Sum up by Ada, ${git("rev-parse", "main^1")} ${here("rev-parse", "HEAD")}`);
  assert.equal(git("stash", "list"), "");

  // Both sides change the line: the conflict is foreseen, goes to the agent, and the merge is finished when the file is right.
  git("commit", "-q", "-a", "-m", "Doc");
  fs.writeFileSync(path.join(desk.work, "total.go"), "// Totals.\npackage main\n\nfunc total() int { return 3 }\n");
  git("commit", "-q", "-a", "-m", "Three");
  fs.writeFileSync(path.join(tree, "total.go"), "package main\n\nfunc total() int { return 4 }\n");
  here("commit", "-q", "-a", "-m", "Four");
  await panel.getByRole("button", { name: "Refresh" }).click();
  await panel.getByText("A merge with main would conflict in total.go.").waitFor();
  assert.equal(await panel.getByRole("button", { name: "Merge into main" }).isDisabled(), true);
  await looks.at(app.page, "merging-conflict");
  await panel.getByRole("button", { name: "Resolve with the agent" }).click();
  await app.log.getByText(/left conflicts in these files/).first().waitFor(); // the agent repeats what it was told
  await panel.getByText("A merge waits for its end.").waitFor();
  await panel.getByRole("button", { name: "Finish merge" }).click();
  await panel.getByText("Resolve the conflicts in total.go first.").waitFor();
  await looks.at(app.page, "merging-waits");
  fs.writeFileSync(path.join(tree, "total.go"), "// Totals.\npackage main\n\nfunc total() int { return 7 }\n");
  await panel.getByRole("button", { name: "Finish merge" }).click();
  await panel.getByText("A merge waits for its end.").waitFor({ state: "hidden" });
  assert.equal(here("show", "HEAD:total.go"), "// Totals.\npackage main\n\nfunc total() int { return 7 }");
  await panel.getByRole("button", { name: /^How to merge/ }).click();
  await app.page.getByRole("option", { name: /^Fast-forward/ }).click();
  await panel.getByRole("button", { name: "Merge into main" }).click();
  await panel.getByText("0 commits ahead").waitFor();
  assert.equal(git("rev-parse", "main"), here("rev-parse", "HEAD"));
  looks.done();
});
