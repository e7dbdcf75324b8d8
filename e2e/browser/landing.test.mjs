// The work of a conversation is committed and pushed from the window: in two clicks, with a message that is there, and nothing is lost of
// what was not chosen.
import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import fs from "node:fs";
import path from "node:path";
import { test } from "node:test";
import { App, Looks } from "./app.mjs";
import { Desk, until } from "./desk.mjs";

test("what is not committed is looked through, committed and pushed", async (t) => {
  const looks = new Looks();
  const desk = Desk.make(t);
  const git = (...args) => execFileSync("git", ["-C", desk.work, ...args], { encoding: "utf8", env: { ...process.env, HOME: desk.home, GIT_CONFIG_NOSYSTEM: "1" } }).trimEnd();
  git("init", "-q", "-b", "main");
  fs.writeFileSync(path.join(desk.home, ".gitconfig"), "[user]\n\tname = Ada\n\temail = ada@example.org\n");
  fs.writeFileSync(path.join(desk.work, "main.go"), "package main\n\nfunc main() {}\n");
  git("add", ".");
  git("commit", "-q", "-m", "Begin");
  const origin = path.join(desk.home, "origin.git");
  execFileSync("git", ["init", "-q", "--bare", origin]);
  git("remote", "add", "origin", origin);
  await desk.start();
  const app = await App.open(desk, { viewport: { width: 1440, height: 900 } });
  const panel = app.page.getByRole("complementary", { name: "Side panel" });
  await app.begin("Demo agent", desk.work);
  await desk.api("PATCH", `/client/sessions/${(await desk.session()).id}`, { title: "Greet people by name. It is rude not to." });
  await app.send("permission");
  await app.request.getByText("Allow once").waitFor();
  fs.writeFileSync(path.join(desk.work, "main.go"), "package main\n\nfunc main() { println(1) }\n");
  fs.writeFileSync(path.join(desk.work, "notes.txt"), "not yet\n");
  await app.unguarded();
  await app.button("Allow once", app.request).click();
  await app.footers.first().getByRole("button", { name: /\d+ files/ }).waitFor();

  // Two clicks: the button in the head, and the one that commits.
  await app.button("Commit…").click();
  const list = panel.getByRole("list", { name: "Uncommitted files" });
  await list.getByRole("button", { name: "main.go" }).waitFor();
  const message = panel.getByRole("textbox", { name: "Commit message" });
  assert.equal(await message.inputValue(), "Greet people by name");
  await list.getByRole("button", { name: "main.go" }).click();
  await panel.getByText("func main() { println(1) }").first().waitFor();
  await looks.at(app.page, "landing");
  await list.getByRole("checkbox", { name: "Commit notes.txt" }).uncheck();
  const others = (await list.getByRole("listitem").count()) - 1;
  await panel.getByRole("button", { name: `Commit ${others} file${others === 1 ? "" : "s"}` }).click();
  await app.page.getByText("Committed Greet people by name").waitFor();
  await until("the file that was left", async () => (await list.getByRole("listitem").allTextContents()).join().trim() === "notes.txt");
  assert.equal(git("log", "--format=%s by %an"), "Greet people by name by Ada\nBegin by Ada");
  assert.equal(git("status", "--porcelain"), "?? notes.txt");

  // The push, and what somebody else has pushed.
  await panel.getByText("2 commits to push").waitFor();
  await panel.getByRole("button", { name: "Push", exact: true }).click();
  await app.page.getByText("Pushed to origin/main").waitFor();
  assert.equal(execFileSync("git", ["-C", origin, "log", "-1", "--format=%s", "main"], { encoding: "utf8" }).trim(), "Greet people by name");
  const other = path.join(desk.home, "other");
  execFileSync("git", ["clone", "-q", "-b", "main", origin, other]);
  execFileSync("git", ["-C", other, "-c", "user.name=O", "-c", "user.email=o@localhost", "commit", "-q", "--allow-empty", "-m", "theirs"]);
  execFileSync("git", ["-C", other, "push", "-q"]);
  await message.fill("Notes\n\nOf the day.");
  await message.press("Control+Enter");
  await app.page.getByText("Committed Notes").waitFor();
  await panel.getByText("Everything is committed.").waitFor();
  await panel.getByRole("button", { name: "Push", exact: true }).click();
  await panel.getByText("origin has commits on main that are not here. Pull them first.").waitFor();
  await looks.at(app.page, "landing-rejected");
  looks.done();

  // Amended, as long as nobody has it; and what another program has committed meanwhile is told.
  await panel.getByRole("checkbox", { name: /^Amend/ }).check();
  await message.fill("Notes of today");
  await panel.getByRole("button", { name: "Amend commit" }).click();
  await app.page.getByText("Committed Notes of today").waitFor();
  assert.equal(git("log", "--format=%s", "-2"), "Notes of today\nGreet people by name");
  fs.writeFileSync(path.join(desk.work, "notes.txt"), "more\n");
  await panel.getByRole("button", { name: "Refresh" }).click();
  await list.getByRole("button", { name: "notes.txt" }).waitFor();
  git("commit", "-q", "--allow-empty", "-m", "by hand");
  await message.fill("More");
  await panel.getByRole("button", { name: "Commit 1 file" }).click();
  await panel.getByText("There are new commits since. The list was refreshed.").waitFor();
  await panel.getByRole("button", { name: "Commit 1 file" }).click();
  await app.page.getByText("Committed More").waitFor();
  assert.equal(git("log", "--format=%s", "-2"), "More\nby hand");

  // Of a file with two changes, one is committed.
  const lines = (...list) => list.map((line) => `${line}\n`).join("");
  const many = Array.from({ length: 30 }, (_, n) => `line ${n + 1}`);
  fs.writeFileSync(path.join(desk.work, "many.txt"), lines(...many));
  git("add", "many.txt");
  git("commit", "-q", "-m", "Many");
  fs.writeFileSync(path.join(desk.work, "many.txt"), lines("first", ...many.slice(1, 29), "last"));
  await panel.getByRole("button", { name: "Refresh" }).click();
  await list.getByRole("button", { name: "many.txt" }).click();
  await panel.getByRole("checkbox", { name: "Commit change 2 of 2 in many.txt" }).uncheck();
  await looks.at(app.page, "landing-hunks");
  await message.fill("The first");
  await panel.getByRole("button", { name: "Commit 1 file" }).click();
  await app.page.getByText("Committed The first").waitFor();
  assert.equal(git("show", "HEAD:many.txt"), lines("first", ...many.slice(1)).trimEnd());
  assert.equal(git("status", "--porcelain", "many.txt"), " M many.txt");
  await panel.getByText("last", { exact: true }).first().waitFor();
  looks.done();
});
