// Ten typical answers, as they are read: nothing of them is cut, axe finds nothing, and with E2E_ARTEFACTS each is shot in light and dark.
// make pictures takes those of the manual.
import assert from "node:assert/strict";
import fs from "node:fs";
import path from "node:path";
import { test } from "node:test";
import { answers, files, hostile, player } from "./answers.mjs";
import { App, Looks } from "./app.mjs";
import { keepPicture, wanted } from "./camera.mjs";
import { Desk, until } from "./desk.mjs";

/** What must be on the screen before an answer counts as shown. */
const shown = {
  review: "li .tok-keyword",
  table: "iframe",
  image: ".picture img",
  code: ".tok-string-expression",
  diff: ".tok-inserted",
  right: "[dir=rtl]",
};

/** Runs in the page: text of answers that is cut off or that lies over other text of the same answer. */
function faultsOf(log) {
  const found = [];
  for (const block of log.querySelectorAll(".markdown :is(p, li, h1, h2, h3, th)")) {
    if (block.scrollWidth > block.clientWidth + 1 && getComputedStyle(block).display !== "inline") found.push(`cut: ${block.textContent.slice(0, 60)}`);
  }
  return found;
}

/** A desk with the agent that plays them. */
async function opened(t) {
  const desk = Desk.make(t);
  for (const [name, text] of Object.entries(files)) {
    fs.mkdirSync(path.dirname(path.join(desk.work, name)), { recursive: true });
    fs.writeFileSync(path.join(desk.work, name), text);
  }
  const script = path.join(desk.dir, "answers.json");
  fs.writeFileSync(script, JSON.stringify({ ...answers, hostile }));
  desk.agents([{ id: "player", name: "Player", command: desk.script("player.js", player(script)) }]);
  await desk.start();
  return { desk, app: await App.open(desk, { viewport: { width: 1280, height: 1000 } }) };
}

/** Has an answer played, and opens its conversation. */
async function play({ desk, app }, name) {
  const { id } = await desk.api("POST", "/client/sessions", { agent: "player", cwd: desk.work, title: `Answer: ${name}` });
  await desk.api("POST", `/client/sessions/${id}/prompt`, { message: name });
  await app.sidebar.getByRole("treeitem").filter({ hasText: `Answer: ${name}` }).click();
  const end = name === "question" ? app.request : app.footers;
  await end.first().waitFor();
}

test("ten typical answers are good to read, in light and dark", { timeout: 600_000 }, async (t) => {
  const { desk, app } = await opened(t);
  const looks = new Looks();
  for (const name of Object.keys(answers)) {
    await play({ desk, app }, name);
    if (shown[name]) await app.log.locator(shown[name]).first().waitFor({ timeout: 20_000 });
    await app.page.evaluate(() => document.fonts.ready);
    await until("the begin of the answer", async () => {
      await app.log.evaluate((log) => log.scrollTo(0, 0));
      return app.log.evaluate((log) => log.scrollTop === 0);
    });
    if (name === "subagent") await app.log.locator("[data-row=work] [data-fold]").first().click();
    assert.deepEqual(await app.log.evaluate(faultsOf), [], name);
    await looks.at(app.page, `answer-${name}`);
    for (const colorScheme of wanted ? ["light", "dark"] : []) {
      await app.page.emulateMedia({ colorScheme, reducedMotion: "reduce" });
      await keepPicture(app.page, `answer-${name}-${colorScheme}`, await app.page.getByRole("main").screenshot());
    }
    if (name === "review") {
      await app.log.evaluate((log) => log.scrollTo(0, log.scrollHeight));
      await looks.at(app.page, `answer-${name}-end`);
    }
  }
  looks.done();
  assert.deepEqual(desk.complaints, []);
});

test("diagrams, folds, notes and pictures do nothing but show", async (t) => {
  const { desk, app } = await opened(t);
  const asked = [];
  app.page.on("request", (request) => asked.push(request.url()));
  await play({ desk, app }, "hostile");
  const frame = app.log.locator("iframe");
  await frame.waitFor();
  await app.log.getByText("This diagram cannot be drawn").waitFor();
  assert.match(await app.log.locator(".diagram pre").last().innerText(), /A -->/, "a broken diagram shows its source");

  // The frame has neither scripts nor an origin, and nothing in it leads or loads anything.
  assert.equal(await frame.count(), 1);
  assert.equal(await frame.getAttribute("sandbox"), "");
  assert.equal(await frame.getAttribute("src"), null);
  const page = await frame.getAttribute("srcdoc");
  assert.match(page, /default-src 'none'; style-src 'unsafe-inline'/);
  assert.doesNotMatch(page, /<script|<img|<image|<foreignObject|href=|\son\w+=|display: ?none/i);
  assert.equal(await app.page.evaluate(() => getComputedStyle(document.body).display), "block", "the style of the page is its own");

  await app.log.getByText("Fold").first().click();
  await app.log.getByRole("button", { name: /^Footnote/ }).click();
  assert.equal(await app.page.evaluate(() => window.deskhandHacked), undefined);
  assert.equal(await app.log.locator("script, style, form, object, embed, img, .markdown svg, details[ontoggle], [onclick], [onerror]").count(), 0);
  assert.deepEqual(asked.filter((url) => !url.startsWith(desk.url)), [], "nothing is fetched from elsewhere");
  assert.deepEqual(asked.filter((url) => /\/tree\/file/.test(url)), [], "nothing outside is asked for");

  // The source instead of the drawing, and back; and in the other colours.
  const diagram = app.log.locator(".diagram").first();
  await app.button("Show source", diagram).click();
  await diagram.locator("pre").getByText("flowchart LR").waitFor();
  await app.button("Show diagram", diagram).click();
  await app.page.emulateMedia({ colorScheme: "dark" });
  await until("the diagram in dark", async () => /color-scheme:dark/.test(await frame.getAttribute("srcdoc")));
  assert.deepEqual(desk.complaints, []);
});
