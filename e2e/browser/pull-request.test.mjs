// From a commit to a pull request by the person's own gh, which is a stand-in here, and back: a failed check and a comment go to the agent.
import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import fs from "node:fs";
import os from "node:os";
import path from "node:path";
import { test } from "node:test";
import { App, Looks } from "./app.mjs";
import { Desk, until } from "./desk.mjs";
import { gh, nodes, run, said } from "./gh.mjs";

test("a branch becomes a pull request, and its failed check goes to the agent", async (t) => {
  const looks = new Looks();
  const tools = fs.mkdtempSync(path.join(os.tmpdir(), "deskhand-gh-"));
  t.after(() => fs.rmSync(tools, { recursive: true, force: true }));
  const desk = Desk.make(t, { env: { PATH: `${tools}:${process.env.PATH}` } });
  fs.writeFileSync(path.join(tools, "gh"), gh(tools), { mode: 0o755 });
  const request = {
    number: 12, url: "https://github.com/acme/app/pull/12", state: "OPEN", mergeable: "MERGEABLE", mergeStateStatus: "BLOCKED", reviewDecision: "CHANGES_REQUESTED",
    baseRefName: "main", author: { login: "ada" }, headRepository: { nameWithOwner: "acme/app" }, reviews: nodes(), comments: nodes(),
    commits: nodes({ commit: { statusCheckRollup: { contexts: nodes(run("lint", "COMPLETED", "SUCCESS"), run("test", "COMPLETED", "FAILURE"), run("build", "IN_PROGRESS", "")) } } }),
    reviewThreads: nodes({ isResolved: false, path: "total.go", line: 3, comments: nodes(said("bob", "Should this not be the sum of *all* rows?\nThe header row is left out here.")) }),
  };
  const put = (state) => fs.writeFileSync(path.join(tools, "state.json"), JSON.stringify(state));
  put({ requests: [], next: request });
  const calls = () => (fs.existsSync(path.join(tools, "calls")) ? fs.readFileSync(path.join(tools, "calls"), "utf8").trim().split("\n").map((line) => JSON.parse(line)) : []);

  const git = (...args) => execFileSync("git", ["-C", desk.work, ...args], { encoding: "utf8", env: { ...process.env, HOME: desk.home, GIT_CONFIG_NOSYSTEM: "1" } }).trimEnd();
  const bare = path.join(desk.home, "bare.git");
  fs.writeFileSync(path.join(desk.home, ".gitconfig"), `[user]\n\tname = Ada\n\temail = ada@example.org\n[url "${bare}"]\n\tpushInsteadOf = git@github.com:acme/app.git\n`);
  git("init", "-q", "-b", "main");
  git("init", "-q", "--bare", "-b", "main", bare);
  git("remote", "add", "origin", "git@github.com:acme/app.git");
  fs.writeFileSync(path.join(desk.work, "total.go"), "package main\n\nfunc total() int { return 1 }\n");
  git("add", ".");
  git("commit", "-q", "-m", "Begin");
  git("push", "-q", "origin", "main");
  git("checkout", "-q", "-b", "total");
  await desk.start();
  const app = await App.open(desk, { viewport: { width: 1440, height: 900 } });
  const panel = app.page.getByRole("complementary", { name: "Side panel" });
  await app.begin("Demo agent", desk.work);
  await desk.api("PATCH", `/client/sessions/${(await desk.session()).id}`, { title: "Sum up all rows. Now it is one." });
  fs.writeFileSync(path.join(desk.work, "total.go"), "package main\n\nfunc total() int { return 2 }\n");
  git("commit", "-q", "-a", "-m", "Two");

  // The person is asked before gh runs for the first time.
  await app.button("Branch total").click();
  await app.button("Pull request…", panel).click();
  await panel.getByText("May Deskhand use your gh for github.com?").waitFor();
  await looks.at(app.page, "pull-ask");
  assert.deepEqual(calls(), []);
  await app.button("Use gh", panel).click();

  // The form is filled in, and says what it pushes.
  const form = panel.getByRole("region", { name: "New pull request" });
  const title = form.getByRole("textbox", { name: "Title" });
  await until("the proposal", async () => (await title.inputValue()) === "Sum up all rows");
  assert.match(await form.getByRole("textbox", { name: "Description" }).inputValue(), /Two/);
  await form.getByText("Pushes 1 commit to origin and makes a pull request in acme/app.").waitFor();
  await looks.at(app.page, "pull-form");
  await form.getByRole("textbox", { name: "Description" }).fill("All rows count now.");
  await app.button("Create pull request", form).click();
  await app.page.getByText("Pull request #12 was made").waitFor();
  assert.equal(execFileSync("git", ["-C", bare, "log", "-1", "--format=%s", "total"], { encoding: "utf8" }).trim(), "Two");
  const made = calls().find(({ args }) => args.at(-1) === "repos/acme/app/pulls");
  assert.deepEqual(made.body, { title: "Sum up all rows", body: "All rows count now.", head: "acme:total", base: "main", draft: false });
  assert.deepEqual(made.args.slice(0, 5), ["api", "--hostname", "github.com", "--include", "--method"]);
  for (const { cwd, there } of calls()) {
    assert.ok(!cwd.startsWith(desk.work), `gh ran in ${cwd}`);
    assert.deepEqual(there, []);
  }

  // The head has it, and Changes says what it waits for.
  const chip = app.page.getByRole("button", { name: /^Pull request #12: open, 1 check failed, 1 check is running, changes were asked for, 1 open comment$/ });
  await chip.waitFor();
  const waits = panel.getByRole("list", { name: "What pull request #12 waits for" });
  await waits.getByText("CI / test").waitFor();
  await waits.getByText("total.go:3").waitFor();
  await looks.at(app.page, "pull-request");

  // One press tells the agent.
  await waits.getByRole("listitem").filter({ hasText: "CI / test" }).getByRole("button", { name: "Send to the agent" }).click();
  await app.log.getByText("The check “CI / test” of pull request #12 has failed. Find out why, and mend it. What it said: https://ci.example/test").first().waitFor(); // the agent repeats it
  await waits.getByRole("listitem").filter({ hasText: "bob" }).getByRole("button", { name: "Send to the agent" }).click();
  await app.page.getByText("bob has commented on").waitFor();
  const { items } = await desk.api("GET", `/client/sessions/${(await desk.session()).id}/queue`); // the agent asks a person meanwhile
  assert.equal(items[0].message, "bob has commented on `total.go:3` in pull request #12:\n\n> Should this not be the sum of *all* rows?\n> The header row is left out here.\n\nSee to it.");
  assert.equal(await waits.getByRole("button", { name: "Sent" }).count(), 2);
  await looks.at(app.page, "pull-sent");

  // The forge is asked again when the person wants it, and what it answered before stays while it does not answer.
  put({ requests: [{ ...request, title: "Sum up all rows", commits: nodes({ commit: { statusCheckRollup: null } }), reviewThreads: nodes(), reviewDecision: "APPROVED", mergeStateStatus: "CLEAN" }] });
  await until("the newer answer", async () => {
    await app.button("Ask the forge again", panel).click();
    return app.page.getByRole("button", { name: "Pull request #12: open, approved", exact: true }).isVisible();
  });
  const before = calls().length;
  await panel.getByRole("button", { name: "Refresh" }).click();
  await panel.getByRole("region", { name: "Pull request #12: open" }).waitFor();
  assert.equal(calls().length, before);
  fs.rmSync(path.join(tools, "gh"));
  await until("the refusal", async () => {
    await app.button("Ask the forge again", panel).first().click();
    return panel.getByText("gh is not on this computer. Install it, or use the browser for github.com.").isVisible();
  });
  await panel.getByRole("region", { name: "Pull request #12: open" }).waitFor();
  await looks.at(app.page, "pull-old");

  // The answer about the host can be changed.
  await app.settingsOf("General");
  const hosts = app.page.getByRole("list", { name: "Pull requests" });
  await hosts.getByText("github.com").scrollIntoViewIfNeeded();
  await looks.at(app.page, "pull-settings");
  await app.button("Ask again", hosts).click();
  await hosts.waitFor({ state: "hidden" });
  assert.equal((await desk.api("GET", "/client/settings")).forges, "");
  looks.done();
});
