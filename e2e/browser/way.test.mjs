// The whole way from a prompt to a pull request with two agents, in clicks beside typing.
import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import fs from "node:fs";
import os from "node:os";
import path from "node:path";
import { test } from "node:test";
import { App } from "./app.mjs";
import { Desk, until } from "./desk.mjs";
import { gh, nodes } from "./gh.mjs";

test("two agents, one prompt, and a pull request take fewer than 15 clicks", async (t) => {
  const tools = fs.mkdtempSync(path.join(os.tmpdir(), "deskhand-gh-"));
  t.after(() => fs.rmSync(tools, { recursive: true, force: true }));
  const desk = Desk.make(t, { env: { PATH: `${tools}:${process.env.PATH}` } });
  fs.writeFileSync(path.join(tools, "gh"), gh(tools), { mode: 0o755 });
  const request = {
    number: 12, url: "https://github.com/acme/app/pull/12", state: "OPEN", mergeable: "MERGEABLE", mergeStateStatus: "CLEAN", reviewDecision: "",
    baseRefName: "main", author: { login: "ada" }, headRepository: { nameWithOwner: "acme/app" }, reviews: nodes(), comments: nodes(),
    commits: nodes({ commit: { statusCheckRollup: null } }), reviewThreads: nodes(),
  };
  fs.writeFileSync(path.join(tools, "state.json"), JSON.stringify({ requests: [], next: request }));
  const git = (...args) => execFileSync("git", ["-C", desk.work, ...args], { encoding: "utf8", env: { ...process.env, HOME: desk.home, GIT_CONFIG_NOSYSTEM: "1" } }).trimEnd();
  const bare = path.join(desk.home, "bare.git");
  fs.writeFileSync(path.join(desk.home, ".gitconfig"), `[user]\n\tname = Ada\n\temail = ada@example.org\n[url "${bare}"]\n\tpushInsteadOf = git@github.com:acme/app.git\n`);
  git("init", "-q", "-b", "main");
  git("init", "-q", "--bare", "-b", "main", bare);
  git("remote", "add", "origin", "git@github.com:acme/app.git");
  fs.mkdirSync(path.join(desk.work, ".deskhand"));
  fs.writeFileSync(path.join(desk.work, ".deskhand", "project.json"), JSON.stringify({ test: "test -e deskhand-demo.md" }));
  git("add", ".");
  git("commit", "-q", "-m", "Begin");
  git("push", "-q", "origin", "main");
  await desk.start();
  const app = await App.open(desk, { viewport: { width: 1440, height: 900 } });
  const { page } = app;
  await app.choose("Directory", "Choose a directory…");
  await app.chooseDirectory(desk.work);
  await page.evaluate(() => {
    window.clicks = 0;
    window.addEventListener("click", (event) => event.detail > 0 && window.clicks++, true);
  });

  await app.button("Compare with another agent").click();
  await app.composer.fill("Write it down, with my permission");
  await page.keyboard.press("Enter");
  for (const name of ["Demo agent", "Demo agent 2"]) {
    const column = page.getByRole("region", { name, exact: true });
    await column.getByText("Allow once").waitFor();
    await app.unguarded();
    await column.getByRole("button", { name: "Allow once" }).click();
    await column.getByText("Done", { exact: true }).waitFor();
  }
  await app.button("Run tests").click();
  await app.button("Approve and run").click();
  const second = page.getByRole("region", { name: "Demo agent 2", exact: true });
  await second.getByText("Tests passed").waitFor();
  await app.button("Take this one: Demo agent 2").click();
  await app.button("Take Demo agent 2", page.getByRole("dialog")).click();
  await app.log.waitFor();
  const panel = page.getByRole("complementary", { name: "Side panel" });
  await app.button("Commit…", panel).click();
  await panel.getByRole("button", { name: /^Commit( 1 file)?$/ }).click();
  await app.button("Against the base", panel).click();
  await app.button("Pull request…", panel).click();
  await app.button("Use gh", panel).click();
  const form = panel.getByRole("region", { name: "New pull request" });
  await until("the proposal", async () => (await form.getByRole("textbox", { name: "Title" }).inputValue()).startsWith("Write it down"));
  await app.button("Create pull request", form).click();
  await page.getByText("Pull request #12 was made").waitFor();
  assert.match(execFileSync("git", ["-C", bare, "branch", "--list", "deskhand/*"], { encoding: "utf8" }), /deskhand\/mock-write-it-down/);
  const clicks = await page.evaluate(() => window.clicks);
  t.diagnostic(`${clicks} clicks`);
  assert.ok(clicks < 15, `got ${clicks} clicks, want fewer than 15`);
});
