// Answers that are remembered: made where an agent asks, told of where they answer, listed, changed, tried and taken back.
import assert from "node:assert/strict";
import fs from "node:fs";
import path from "node:path";
import { test } from "node:test";
import { App, Looks } from "./app.mjs";
import { Desk, until } from "./desk.mjs";

const held = async (desk) => (await desk.api("GET", "/client/inbox")).items.length;
const own = async (desk) => (await desk.api("GET", "/client/rules")).items.filter((rule) => !rule.builtin);

async function open(t) {
  const desk = await Desk.open(t);
  const app = await App.open(desk, { agent: "Demo agent" });
  app.rules = app.log.getByRole("note", { name: "Answered by a rule" });
  app.menu = (name) => app.page.getByRole("menu", { name });
  app.always = app.button("Allow by rule…", app.request);
  app.reject = async () => {
    await app.button("Reject", app.request).click();
    await app.request.waitFor({ state: "detached" });
  };
  app.settings = async () => {
    await app.settingsOf("Permissions");
    const section = app.page.getByTestId("permissions");
    await section.getByRole("button", { name: "New rule" }).waitFor();
    return section;
  };
  return { desk, app, page: app.page };
}

const focused = (locator) => locator.evaluate((element) => element === document.activeElement);

test("what is remembered in a directory answers there, and there alone, until it is undone", async (t) => {
  const { desk, app, page } = await open(t);
  const looks = new Looks();
  await app.send("/ask-to-run git status");
  await app.always.waitFor(); // what may be remembered is told after the card stands there
  // The agent's own options, in their order and words, and ours apart from them.
  const buttons = app.request.locator("footer").getByRole("button");
  assert.deepEqual((await buttons.allInnerTexts()).map((text) => text.replace(/\s+/g, " ").trim()),
    ["Allow once", "Always allow", "Reject", "Allow by rule…", "Deny by rule…", "Reject with a note…"]); // their keys are shown while they work
  await app.always.click();
  const menu = app.menu("Always allow");
  await menu.waitFor();
  assert.deepEqual(await menu.getByRole("menuitem").allInnerTexts(), ["In this conversation", "In this directory", "Everywhere", "Edit rule…"]);
  await looks.at(page, "rules-menu");
  await menu.getByRole("menuitem", { name: "Always allow git status in this directory" }).click();
  await app.log.getByText("You chose allow-once").waitFor(); // nothing that the agent would remember

  await app.turn("/ask-to-run git status");
  const line = app.rules.last();
  await line.getByText("Allowed by your rule:").waitFor();
  assert.match((await line.innerText()).replace(/\s+/g, " "), /^Allowed by your rule: Run git status in this directory Undo$/);
  await app.log.getByText("Allow once, by your rule").waitFor();
  assert.equal(await held(desk), 0);
  await looks.at(page, "rules-line");

  // Elsewhere somebody is asked.
  await desk.api("PATCH", `/client/sessions/${(await desk.session()).id}`, { title: "The first" });
  const other = path.join(desk.home, "other");
  fs.mkdirSync(other);
  await page.keyboard.press("Alt+n");
  await app.begin("Demo agent", other);
  await app.send("/ask-to-run git status");
  await app.request.waitFor();
  assert.equal(await held(desk), 1);
  await app.reject();

  // Back there it is undone, and asks again.
  await app.holds(5_000);
  await app.sidebar.getByRole("treeitem", { name: /^The first/ }).click();
  await line.getByRole("button", { name: "Undo" }).click();
  await line.getByText("Rule removed").waitFor();
  assert.deepEqual(await own(desk), []);
  await app.send("/ask-to-run git status");
  await app.request.waitFor();
  assert.equal(await held(desk), 1);
  // The undo can be taken back as well: what waits is answered by it.
  await page.getByText("Rule removed: Run git status").waitFor();
  await app.button("Undo", page.locator(".toast")).click();
  await app.request.waitFor({ state: "detached" });
  assert.equal((await own(desk)).length, 1);
  looks.done();
});

test("by keyboard alone: nothing in the first moment, a menu that Escape closes, a note", async (t) => {
  const { desk, app, page } = await open(t);
  const { keyboard } = page;
  const looks = new Looks();
  const card = app.request;
  await app.send("/ask-to-run git status");
  await card.waitFor();
  assert.ok(await focused(app.composer), "the request took the focus");
  await keyboard.press("Control+Period");
  await app.unguarded();
  assert.ok(await focused(card), "something in the card has the focus by itself");
  await app.always.waitFor(); // before that its key does nothing
  await keyboard.press("m");
  const menu = app.menu("Always allow");
  const first = menu.getByRole("menuitem").first();
  await until("the focus in the menu", () => focused(first));
  for (const key of ["1", "2", "3", "r", "m", "n"]) await keyboard.press(key); // keys of the card
  assert.equal(await held(desk), 1, "a key within the menu answered");
  await keyboard.press("Escape");
  await menu.waitFor({ state: "detached" });
  assert.ok(await focused(app.always), "the focus is lost");
  assert.equal(await held(desk), 1, "Escape answered");
  await keyboard.press("Tab"); // Deny by rule…
  await keyboard.press("Enter");
  const never = app.menu("Never allow");
  await until("the focus in the menu", () => focused(never.getByRole("menuitem").first()));
  await keyboard.press("ArrowDown");
  await keyboard.press("Enter");
  await app.log.getByText("You chose reject-once").waitFor();
  assert.equal((await own(desk)).map(({ effect, scope, pattern }) => `${effect} ${scope} ${pattern}`).join(), "deny directory git status");
  await app.turn("/ask-to-run git status");
  await app.rules.last().getByText("Denied by your rule:").waitFor();

  // A note: letters in it are no keys, a reload keeps it, and it is sent as a message.
  await app.send("/ask-to-run git push");
  await card.waitFor();
  await keyboard.press("Control+Period");
  await app.unguarded();
  await card.getByRole("button", { name: "Reject with a note…" }).focus();
  await keyboard.press("Enter");
  const field = card.getByRole("textbox", { name: /^Reject, and tell/ });
  await until("the focus in the field", () => focused(field));
  await keyboard.type("rename a1 first");
  await looks.at(page, "rules-note");
  assert.equal(await held(desk), 1, "a letter answered");
  await page.reload();
  await field.waitFor();
  assert.equal(await field.inputValue(), "rename a1 first");
  await app.unguarded();
  await field.focus();
  await keyboard.press("Escape");
  await field.waitFor({ state: "detached" });
  assert.equal(await held(desk), 1);
  await card.getByRole("button", { name: "Reject with a note…" }).focus();
  await keyboard.press("Enter");
  await until("the focus in the field", () => focused(field));
  assert.equal(await field.inputValue(), "rename a1 first");
  await keyboard.press("Enter");
  await card.waitFor({ state: "detached" });
  await app.log.getByText("I rejected “`git push`”: rename a1 first").waitFor();
  looks.done();
});

test("what is dangerous says so, is shown whole, and is never allowed everywhere", async (t) => {
  const { desk, app, page } = await open(t);
  const looks = new Looks();
  await app.send("/ask-to-run sudo cat ../secret/.env");
  const dangers = app.request.getByTestId("dangers");
  await dangers.getByText("Runs with administrator rights").waitFor();
  await dangers.getByText("Reaches outside the directory").waitFor();
  await dangers.getByText("Touches files that hold secrets").waitFor();
  await looks.at(page, "rules-danger");
  assert.equal(await app.always.count(), 0, "a rule is offered for what a built-in rule asks about");
  await app.reject();

  // One for which a rule is offered.
  await app.send("/ask-to-run sudo ls");
  await dangers.waitFor();
  await app.always.click();
  const menu = app.menu("Always allow");
  await menu.getByText("Not everywhere: it is dangerous.").waitFor();
  assert.deepEqual(await menu.getByRole("menuitem").allInnerTexts(), ["In this conversation", "In this directory", "Edit rule…"]);
  await looks.at(page, "rules-danger-menu");
  await menu.getByRole("menuitem", { name: "Edit rule…" }).click();
  const editor = page.getByRole("dialog", { name: "Allow, and remember it" });
  await editor.getByRole("radio", { name: "In this directory" }).waitFor();
  assert.equal(await editor.getByRole("radio", { name: "Everywhere" }).count(), 0);
  await editor.getByRole("button", { name: "Cancel" }).click();
  await app.reject();

  const hostile = `printf '<b onclick=alert(1)>%s</b>' "${"long ".repeat(60)}" && echo \u202eend`;
  await app.send(`/ask-to-run ${hostile}`);
  await app.request.waitFor();
  assert.equal((await app.request.locator("pre.command").innerText()).replace(/^\$ /, ""), hostile.replace("\u202e", "[U+202E]"));
  await dangers.getByText("Contains invisible characters").waitFor();
  assert.equal(await app.request.locator("b").count(), 0);
  assert.equal(await app.always.count(), 0, "a rule is offered for what cannot be proven");
  await looks.at(page, "rules-hostile");
  assert.equal(await held(desk), 1);
  looks.done();
});

test("a rule is written and tried before it is kept, as an answer and in the settings", async (t) => {
  const { desk, app, page } = await open(t);
  const looks = new Looks();
  for (const command of ["git status", "git log -3", "npm test"]) {
    await app.send(`/ask-to-run ${command}`);
    await app.request.waitFor();
    await app.reject();
  }
  await app.send("/ask-to-run npm run build");
  await app.request.waitFor();
  await app.always.click();
  await app.menu("Always allow").getByRole("menuitem", { name: "Edit rule…" }).click();
  const answer = page.getByRole("dialog", { name: "Allow, and remember it" });
  const pattern = answer.getByRole("textbox", { name: "Pattern" });
  await until("the focus on the pattern", () => focused(pattern));
  assert.equal(await pattern.inputValue(), "npm run build");
  await app.unguarded();
  await page.keyboard.press("Escape");
  await answer.waitFor({ state: "detached" });
  await app.always.click();
  await app.menu("Always allow").getByRole("menuitem", { name: "Edit rule…" }).click();
  await answer.getByText("4 requests checked:").waitFor();
  await answer.getByText("1 allowed").waitFor();
  await pattern.fill("git *");
  await answer.getByText("2 allowed").waitFor();
  await answer.getByRole("button", { name: "Allow and remember" }).click();
  await answer.getByText("The rule git * would not answer this request.").waitFor();
  assert.equal(await pattern.inputValue(), "git *");
  assert.equal(await held(desk), 1, "a rule that does not cover it answered it");
  for (let times = 0; times < 3; times++) await page.keyboard.press("Escape"); // twice would stop a turn
  await answer.waitFor(); // what was written stays
  assert.equal(await held(desk), 1, "Escape in a dialog stopped the turn behind it");
  await pattern.fill("npm *");
  await answer.getByText("2 allowed").waitFor();
  await answer.getByRole("radio", { name: "In this directory" }).check();
  await answer.getByRole("button", { name: "Expires: Never" }).click();
  await page.getByRole("option", { name: "In a day" }).click();
  await answer.getByRole("list", { name: "What it would have changed" }).getByText("npm run build").waitFor();
  await until("a simulation of it", async () => !(await answer.getByRole("button", { name: "Allow and remember" }).isDisabled()));
  await answer.getByText("This may allow any program to be run").waitFor();
  await looks.at(page, "rules-answer");
  await answer.getByRole("button", { name: "Allow and remember" }).click();
  await app.log.getByText("You chose allow-once").waitFor();
  const [made] = await own(desk);
  assert.deepEqual([made.pattern, made.scope, made.directory], ["npm *", "directory", desk.work]);
  assert.ok(Math.abs(Date.parse(made.expiresAt) - Date.now() - 86_400_000) < 120_000);

  // In the settings: a new one, with what is wrong beside its field and nothing lost.
  const section = await app.settings();
  await section.getByRole("list", { name: "~/project" }).getByText("npm *").waitFor();
  await section.getByRole("button", { name: "9 built-in rules" }).click();
  await section.getByText("A function that starts itself over and over").waitFor();
  await looks.at(page, "rules-settings");
  await section.getByRole("button", { name: "New rule" }).click();
  const editor = page.getByRole("dialog", { name: "New rule" });
  const what = editor.getByRole("textbox", { name: "Pattern" });
  await until("the focus on the pattern", () => focused(what));
  const save = editor.getByRole("button", { name: "Save rule" });
  assert.ok(await save.isDisabled(), "saved without a pattern");
  await what.fill("git 'status");
  await editor.getByText("This cannot be a rule: a quote has no end").waitFor();
  assert.equal(await what.getAttribute("aria-invalid"), "true");
  await what.fill("*");
  await editor.getByText("* would allow every command. Name the program.").waitFor();
  await looks.at(page, "rules-fault");
  await what.fill("git *");
  await editor.getByRole("radio", { name: "Deny" }).check();
  await editor.getByText("2 denied").waitFor();
  await editor.getByRole("radio", { name: "Everywhere" }).check();
  await editor.getByRole("textbox", { name: "Note" }).fill("by hand only");
  await until("a simulation of it", async () => !(await save.isDisabled()));
  await looks.at(page, "rules-new");
  await what.press("Enter");
  await editor.waitFor({ state: "detached" });
  await section.getByRole("list", { name: "Everywhere" }).getByText("git *").waitFor();
  assert.equal((await own(desk)).length, 2);

  // It is changed, filtered, and another surface's rule comes and goes by itself.
  await section.getByRole("button", { name: "Edit: Run git *" }).click();
  const change = page.getByRole("dialog", { name: "Edit rule" });
  await change.getByRole("radio", { name: "Ask" }).check();
  await until("a simulation of it", async () => !(await change.getByRole("button", { name: "Save rule" }).isDisabled()));
  await change.getByRole("button", { name: "Save rule" }).click();
  await change.waitFor({ state: "detached" });
  await section.getByRole("list", { name: "Everywhere" }).getByText("Ask", { exact: true }).waitFor();
  const { id } = await desk.api("POST", "/client/rules", { effect: "allow", scope: "everywhere", kind: "execute", pattern: "make test" });
  await section.getByText("make test").waitFor();
  await section.getByRole("searchbox", { name: "Filter rules" }).fill("make");
  await section.getByText("npm *").waitFor({ state: "detached" });
  await section.getByText("make test").waitFor();
  await desk.api("DELETE", `/client/rules/${id}`);
  await section.getByText("No matching rules.").waitFor();
  await section.getByRole("searchbox", { name: "Filter rules" }).fill("");

  // Reverted, and that as well.
  await app.holds(5_000);
  await section.getByRole("button", { name: "Remove: Run git *" }).focus();
  await page.keyboard.press("Enter");
  await section.getByText("git *").waitFor({ state: "detached" });
  await until("the focus on the next", () => focused(section.getByRole("button", { name: "Remove: Run npm *" })));
  await app.button("Undo", page.locator(".toast")).last().click();
  await section.getByText("git *").waitFor();
  assert.equal((await own(desk)).find((rule) => rule.pattern === "git *").note, "by hand only");
  looks.done();
});
