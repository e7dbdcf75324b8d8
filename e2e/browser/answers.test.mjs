// Ten typical answers, as they are read: nothing of them is cut, axe finds nothing, and with E2E_ARTEFACTS each is shot in light and dark.
import assert from "node:assert/strict";
import fs from "node:fs";
import path from "node:path";
import { test } from "node:test";
import { answers, files, player } from "./answers.mjs";
import { App, Looks } from "./app.mjs";
import { Desk, until } from "./desk.mjs";

/** What must be on the screen before an answer counts as shown. */
const shown = {
  review: "li .tok-keyword",
  table: ".math math",
  code: ".tok-string",
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

test("ten typical answers are good to read, in light and dark", { timeout: 600_000 }, async (t) => {
  const desk = Desk.make(t);
  for (const [name, text] of Object.entries(files)) {
    fs.mkdirSync(path.dirname(path.join(desk.work, name)), { recursive: true });
    fs.writeFileSync(path.join(desk.work, name), text);
  }
  const script = path.join(desk.dir, "answers.json");
  fs.writeFileSync(script, JSON.stringify(answers));
  desk.agents([{ id: "player", name: "Player", command: desk.script("player.js", player(script)) }]);
  await desk.start();
  const app = await App.open(desk, { viewport: { width: 1280, height: 1000 } });
  const looks = new Looks();
  for (const name of Object.keys(answers)) {
    const { id } = await desk.api("POST", "/client/sessions", { agent: "player", cwd: desk.work, title: `Answer: ${name}` });
    await desk.api("POST", `/client/sessions/${id}/prompt`, { message: name });
    await app.sidebar.getByRole("treeitem").filter({ hasText: `Answer: ${name}` }).click();
    const end = name === "question" ? app.request : app.footers;
    await end.first().waitFor();
    if (shown[name]) await app.log.locator(shown[name]).first().waitFor({ timeout: 20_000 });
    await app.page.evaluate(() => document.fonts.ready);
    await until("the begin of the answer", async () => {
      await app.log.evaluate((log) => log.scrollTo(0, 0));
      return app.log.evaluate((log) => log.scrollTop === 0);
    });
    assert.deepEqual(await app.log.evaluate(faultsOf), [], name);
    await looks.at(app.page, `answer-${name}`);
    if (name === "review") {
      await app.log.evaluate((log) => log.scrollTo(0, log.scrollHeight));
      await looks.at(app.page, `answer-${name}-end`);
    }
  }
  looks.done();
  assert.deepEqual(desk.complaints, []);
});
