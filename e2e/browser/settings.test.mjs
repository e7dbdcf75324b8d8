// The settings: their parts and the search over them, the look of the page, who may call, and what is kept.
import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import fs from "node:fs";
import path from "node:path";
import { test } from "node:test";
import { App, Looks } from "./app.mjs";
import { Desk, shoot, until } from "./desk.mjs";

const settings = async (app, part) => {
  await app.settingsOf(part);
  return app.page;
};

const focused = (page) => page.evaluate(() => document.activeElement?.textContent?.trim());

/** What a call with a token answers, as a script would make it. */
const call = async (desk, route, token) =>
  (await fetch(new URL(route, desk.url), { headers: token ? { Authorization: `Bearer ${token}` } : {} })).status;

test("the parts are listed, found by a search, and reached by keys", async (t) => {
  const desk = await Desk.open(t);
  const looks = new Looks();
  const app = await App.open(desk, { viewport: { width: 1440, height: 900 } });
  const page = await settings(app, "General");
  const rail = page.getByRole("navigation", { name: "Parts" });
  assert.deepEqual(await rail.getByRole("button").allInnerTexts(), [
    "General", "Appearance", "Agents", "MCP servers", "Skills", "Instructions", "Usage", "Permissions", "Directories & trust", "Notifications", "Keyboard", "Updates", "About",
    "Data", "Files from agents", "Places", "Discord", "Local API",
  ]);
  await looks.at(page, "settings-top");

  // By keys alone: one stop for the list, arrows in it, and the part that was chosen has the focus.
  await rail.getByRole("button", { name: "General" }).focus();
  for (let n = 0; n < 17; n++) await page.keyboard.press("ArrowDown");
  await page.keyboard.press("Enter");
  await until("the part", async () => (await focused(page)) === "Local API");
  await rail.locator("[aria-current=page]").getByText("Local API").waitFor();

  // Found is what stands there, what it is called elsewhere, and what a control says to those who hear it.
  const search = page.getByRole("searchbox", { name: "Search the settings" });
  const left = () => page.locator("[data-part]:visible").evaluateAll((all) => all.map((one) => one.dataset.part));
  await search.fill("REVOKE expiry");
  await until("the parts found", async () => (await left()).join() === "access");
  await page.getByText("1 part found").waitFor({ state: "attached" });
  await looks.at(page, "settings-found");
  await search.fill("upgrade");
  await until("the parts found", async () => (await left()).join() === "updates");
  await search.press("Enter");
  await until("the part", async () => (await focused(page)) === "Updates");
  await search.fill("zeppelin");
  await page.getByText("Nothing here matches zeppelin.").waitFor();
  await looks.at(page, "settings-nothing");
  await search.press("Escape");
  assert.deepEqual(await left(), ["updates"]); // the part of before

  // A small window has the list above the parts.
  await page.setViewportSize({ width: 720, height: 480 });
  await rail.getByRole("button", { name: "Data" }).click();
  await until("the part", async () => (await focused(page)) === "Data");
  await looks.at(page, "settings-small");
  looks.done();
});

test("the page looks as it was set, and so does the next one from its first moment", async (t) => {
  const desk = await Desk.open(t);
  const looks = new Looks();
  const app = await App.open(desk, { viewport: { width: 1440, height: 900 } });
  const page = await settings(app, "Appearance");
  const part = page.getByRole("region", { name: "Appearance" });
  const background = () => page.evaluate(() => getComputedStyle(document.body).backgroundColor);
  const size = () => page.evaluate(() => getComputedStyle(document.body).fontSize);
  const choose = async (group, name) => {
    // The next one is taken only once this one was answered, which may be after the event that shows it.
    const answered = page.waitForResponse((one) => one.request().method() === "PATCH" && one.url().endsWith("/client/settings"));
    await part.getByRole("group", { name: group }).getByRole("radio", { name, exact: true }).check();
    await (await answered).finished();
  };
  const white = "rgb(255, 255, 255)", dark = "rgb(14, 15, 17)", black = "rgb(0, 0, 0)";
  assert.equal(await background(), white);
  await page.emulateMedia({ colorScheme: "dark" });
  assert.equal(await background(), dark); // as the system
  await choose("Theme", "Light");
  await until("a light page", async () => (await background()) === white);
  await page.emulateMedia({ colorScheme: "light" });
  await choose("Theme", "Dark");
  await until("a dark page", async () => (await background()) === dark);
  await choose("Contrast", "High");
  await until("high contrast", async () => (await background()) === black);
  await choose("Text", "130%");
  await until("larger text", async () => (await size()) === "18.2px");
  await choose("Motion", "None");
  await part.scrollIntoViewIfNeeded();
  await looks.at(page, "settings-dark-high-large");
  const kept = JSON.parse(fs.readFileSync(path.join(desk.config, "deskhand", "settings.json"), "utf8"));
  assert.deepEqual([kept.theme, kept.contrast, kept.textSize, kept.motion], ["dark", "high", 130, "none"]);

  // The next page has it before the program has said anything.
  await page.route("**/client/**", (route) => route.abort());
  await page.reload();
  assert.deepEqual([await background(), await size()], [black, "18.2px"]);
  await page.unroute("**/client/**");

  // The system's own high contrast, and its few colours, take the same way.
  await desk.api("PATCH", "/client/settings", { theme: "system", contrast: "system", textSize: 100 });
  await until("as the system again", async () => (await background()) === white);
  await page.emulateMedia({ colorScheme: "dark", contrast: "more" });
  assert.equal(await background(), black);
  await page.emulateMedia({ colorScheme: "light", contrast: null, forcedColors: "active" });
  await settings(app, "Appearance");
  await shoot(page, "settings-forced");
  looks.done();
});

test("a token opens what it was made for, is shown once, and opens nothing when it is revoked", async (t) => {
  const desk = await Desk.open(t);
  const looks = new Looks();
  const app = await App.open(desk, { viewport: { width: 1440, height: 900 } });
  const page = await settings(app, "Local API");
  const access = page.getByTestId("access");
  await access.getByText("Served for as long as this program runs").waitFor();
  await access.getByText("No tokens yet.").waitFor();
  await access.getByRole("button", { name: "New token" }).click();
  await page.keyboard.type("nightly script");
  await looks.at(page, "settings-token-new");
  await page.keyboard.press("Enter");
  const box = access.getByRole("group", { name: "Token for nightly script" });
  const secret = (await box.locator("code").innerText()).trim();
  assert.match(secret, /^deskhand_[\w-]{43}$/);
  await looks.at(page, "settings-token");
  assert.deepEqual([await call(desk, "/v1/health", secret), await call(desk, "/client/hello", secret), await call(desk, "/v1/health")], [200, 403, 401]);

  // It is nowhere in what is kept.
  const holding = fs.readdirSync(desk.dir, { recursive: true, withFileTypes: true })
    .filter((one) => one.isFile())
    .map((one) => path.join(one.parentPath, one.name))
    .filter((file) => fs.readFileSync(file).includes(secret));
  assert.deepEqual(holding, []);
  await box.getByRole("button", { name: "Done" }).click();
  assert.equal((await page.content()).includes(secret), false);
  const row = access.getByRole("listitem").filter({ hasText: "nightly script" });

  // The second one with this name is refused, and nothing that was written is lost.
  await access.getByRole("button", { name: "New token" }).click();
  await page.keyboard.type("Nightly Script");
  await page.keyboard.press("Enter");
  await access.getByRole("alert").getByText("There is already a token with the name Nightly Script.").waitFor();
  assert.equal(await access.getByLabel("What it is for").inputValue(), "Nightly Script");
  await access.getByRole("button", { name: "Cancel" }).click();

  // Who called.
  await access.getByRole("button", { name: "Show the last calls" }).click();
  const calls = access.getByRole("region", { name: "Calls" });
  await calls.getByRole("row").filter({ hasText: "GET /v1/health" }).filter({ hasText: "nightly script" }).first().waitFor();
  await calls.getByRole("row").filter({ hasText: "403" }).filter({ hasText: "/client/hello" }).waitFor();
  await calls.getByRole("row").filter({ hasText: "401" }).filter({ hasText: "Not let in" }).waitFor();
  await call(desk, "/v1/agents", secret);
  await calls.getByRole("row").filter({ hasText: "GET /v1/agents" }).waitFor(); // it follows
  await calls.scrollIntoViewIfNeeded();
  await looks.at(page, "settings-calls");

  // Revoking asks once.
  await row.getByRole("button", { name: "Revoke the token nightly script" }).click();
  await until("the question", async () => (await focused(page)) === "Revoke it");
  await page.keyboard.press("Enter");
  await access.getByText("No tokens yet.").waitFor();
  assert.equal(await call(desk, "/v1/health", secret), 401);
  looks.done();
});

test("what takes the space is told, given back, and exported as one archive", async (t) => {
  const desk = await Desk.open(t);
  const looks = new Looks();
  const app = await App.open(desk, { agent: "Demo agent", viewport: { width: 1440, height: 900 } });
  await app.turn("echo\nthe quick zeppelin");
  const page = await settings(app, "Data");
  const data = page.getByRole("region", { name: "Data" });
  await data.getByRole("button", { name: "Show disk usage" }).click();
  await data.getByRole("list", { name: "Disk usage" }).getByText("Database").waitFor();
  await data.getByRole("button", { name: "Compact now" }).click();
  await data.getByText(/ freed\.$/).waitFor();

  const target = path.join(desk.home, "exports");
  fs.mkdirSync(target);
  const field = data.getByLabel("Directory for the archive");
  await field.fill(path.join(desk.home, "nowhere"));
  await field.press("Enter");
  await data.getByRole("alert").getByText(/cannot be written to .*nowhere/).waitFor();
  await field.fill(target);
  await field.press("Enter");
  await data.getByText(/^Written to ~\/exports\/deskhand-\d{4}-\d\d-\d\d\.zip/).waitFor();
  await data.evaluate((one) => one.scrollIntoView({ block: "end" }));
  await looks.at(page, "settings-data");
  const [name, ...others] = fs.readdirSync(target);
  assert.deepEqual(others, []);
  const read = "import sys, zipfile, json; z = zipfile.ZipFile(sys.argv[1]); assert z.testzip() is None; c = json.loads(z.read('conversations.json')); " +
    "print(len(c['conversations'])); print(z.read(c['conversations'][0]['folder'] + '/conversation.md').decode())";
  const told = execFileSync("python3", ["-c", read, path.join(target, name)], { encoding: "utf8" });
  assert.match(told, /^1\n[^]*the quick zeppelin/);
  // The search still finds what was said: it knows messages by the numbers of their rows.
  const found = await desk.api("GET", "/client/search?q=zeppelin");
  assert.equal(found.items.length > 0, true);
  looks.done();
});

test("fonts, the editor and how conversations begin are set by the person", async (t) => {
  const desk = await Desk.open(t);
  const looks = new Looks();
  const app = await App.open(desk, { viewport: { width: 1440, height: 900 } });
  const page = await settings(app, "Appearance");
  const look = page.getByRole("region", { name: "Appearance" });
  const stored = () => JSON.parse(fs.readFileSync(path.join(desk.config, "deskhand", "settings.json"), "utf8"));
  const family = (selector) => page.evaluate((selector) => getComputedStyle(document.querySelector(selector)).fontFamily, selector);
  assert.match(await family("body"), /^"Inter Variable"/);
  await look.getByRole("textbox", { name: "Text font" }).fill("DejaVu Serif");
  await look.getByRole("button", { name: "Save" }).click();
  await until("the font", async () => /^"DejaVu Serif", "Inter Variable"/.test(await family("body")));
  await look.getByRole("textbox", { name: "Code font" }).fill('a"; x');
  await look.getByRole("button", { name: "Save" }).click();
  await page.getByRole("alert").getByText("Enter the name of one font, without quotes.").waitFor();
  await look.getByRole("textbox", { name: "Code font" }).fill("DejaVu Sans Mono");
  await look.getByRole("textbox", { name: "Code font" }).press("Enter");
  const size = look.getByRole("group", { name: "Code size" });
  await size.getByRole("radio", { name: "115%" }).check();
  await until("the settings", () => stored().codeFont === "DejaVu Sans Mono" && stored().codeSize === 115);
  await looks.at(page, "settings-fonts");
  await page.reload();
  assert.match(await family("body"), /^"DejaVu Serif"/);

  await app.settingsOf("General");
  const editor = page.getByRole("region", { name: "Editor" });
  const command = editor.getByRole("textbox", { name: "Command" });
  await command.fill("no-such-editor {file}");
  await editor.getByRole("button", { name: "Save" }).click();
  await page.getByRole("alert").getByText("The program no-such-editor cannot be started").waitFor();
  await looks.at(page, "settings-editor-fault");
  assert.equal(await command.inputValue(), "no-such-editor {file}"); // what was typed stays
  const mine = desk.script("my editor.sh", "#!/bin/sh\n");
  await command.fill(`"${mine}" --goto {file}:{line}`);
  await command.press("Enter");
  await until("the words", async () => (await page.getByTestId("editor-runs").locator("code").allInnerTexts()).join("|") === `${mine}|--goto|FILE:LINE`);

  const begins = page.getByRole("region", { name: "New conversations" });
  await begins.getByRole("button", { name: /^Agent: / }).click();
  await page.getByRole("option", { name: "Demo agent" }).click();
  await begins.getByRole("checkbox", { name: /^In a worktree/ }).check();
  await until("the settings", () => stored().defaultAgent === "mock" && stored().newWorktree === true);
  await looks.at(page, "settings-defaults");
  looks.done();
});
