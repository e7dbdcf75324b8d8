// The pictures of the manual, taken from the app as it is, and whether pages and pictures fit each other. Each run of the suite comes to all
// of their scenes, so that none can be of a screen that there is no more; make pictures writes them. These are of a conversation and what
// stands beside it; pictures-screens.test.mjs has the others.
import assert from "node:assert/strict";
import fs from "node:fs";
import path from "node:path";
import { test } from "node:test";
import { images, scenes } from "./camera.mjs";
import { until } from "./desk.mjs";
import { begin, commit, fleet, openLighthouse, scene, show, waiting } from "./scenes.mjs";

const docs = path.join(images, "..");

scene("the first start", async (t) => {
  const { desk, page, camera, app } = await openLighthouse(t);
  fs.writeFileSync(path.join(desk.work, "storm.md"), "# What the lamp does in a storm\n"); // something that can be reviewed
  await app.choose("Directory", "Choose a directory…");
  await app.chooseDirectory(desk.work);
  await app.button("New worktree").waitFor(); // once it is known that the directory can have one
  const starters = page.getByRole("list", { name: "First messages" });
  await starters.getByText("Review what is not committed yet").waitFor();
  await camera.take(page, "first-run", { manual: true });
  await app.button("New worktree").click();
  await page.getByRole("button", { name: "New worktree", pressed: true }).waitFor();
  await camera.take(page, "worktree", { manual: true });
});

scene("several agents", async (t) => {
  const { desk, app, page, camera } = await openLighthouse(t, {
    ready: (desk) => {
      fs.mkdirSync(path.join(desk.work, ".deskhand"));
      fs.writeFileSync(path.join(desk.work, ".deskhand", "project.json"), JSON.stringify({ test: "grep -q TestStorm lamp_test.go" }));
      commit(desk.work, "Say how it is tested");
    },
  });
  const message = "The lamp turns too fast in a storm. Find out why, and mend it.";
  const { members } = await desk.api("POST", "/client/comparisons", { cwd: desk.work, message, members: [{ agent: "keeper" }, { agent: "keeper" }] });
  const [, second] = await Promise.all(members.map(({ session }) => until("the answer", async () => {
    const one = await desk.api("GET", `/client/sessions/${session}`);
    return !one.turn && one.usage && one;
  })));
  const lamp = path.join(second.cwd, "lamp.go");
  fs.writeFileSync(lamp, fs.readFileSync(lamp, "utf8").replace("l.wind >= Gale", "l.wind >= 9"));
  fs.rmSync(path.join(second.cwd, "lamp_test.go"));
  await app.sidebar.getByRole("treeitem", { name: /2 agents/ }).click();
  await app.button("Run tests").click();
  await app.button("Approve and run").click();
  await page.getByText("Tests passed").waitFor();
  await page.getByText("Tests failed with 2").waitFor();
  const files = page.getByRole("region", { name: "Files" });
  await files.getByRole("button", { name: "lamp.go" }).click();
  await files.locator(".tok-keyword").nth(4).waitFor();
  await camera.take(page, "compare", {
    manual: true, says: files,
    last: () => page.getByRole("main").evaluate((main) => {
      const walk = document.createTreeWalker(main, NodeFilter.SHOW_TEXT);
      for (let node = walk.nextNode(); node; node = walk.nextNode())
        if (!node.parentElement.closest(".markdown, figure")) node.data = node.data.replace(/^\d+(\.\d+)? s$/, "1.2 s").replace(/^(From main, )[0-9a-f]{8}/, "$11a2b3c4d");
    }),
  });
});

scene("a conversation, and what stands beside it", async (t) => {
  const { desk, app, page, camera } = await openLighthouse(t);
  await fleet(desk);
  await show(app, "Slow in a storm");
  await app.footers.first().getByRole("button", { name: /2 files/ }).waitFor();
  await app.log.getByRole("link", { name: "notes/keeper.md" }).waitFor();
  await camera.take(page, "conversation", { manual: true });
  for (const run of await app.log.getByRole("button", { name: /^(Read|Ran|Edited|Searched) \d/ }).all()) await run.click(); // work is folded
  await app.log.getByRole("button", { name: /^Edit.*lamp\.go/ }).first().click();
  await app.log.getByRole("button", { name: /go test/ }).first().click();
  await app.log.getByRole("figure").first().scrollIntoViewIfNeeded();
  await camera.take(page, "rows");

  // The panel's tabs.
  await app.footers.first().getByRole("button", { name: /2 files/ }).click();
  await app.panel.getByRole("treeitem", { name: /^lamp\.go/ }).click();
  await app.panel.locator(".tok-keyword").first().waitFor();
  await page.keyboard.press("ArrowRight");
  await page.keyboard.press("c");
  await page.keyboard.type("Why not three times the period?");
  await page.keyboard.press("Enter");
  await camera.take(page, "review", { manual: true });
  await page.keyboard.press("Alt+2");
  await app.panel.getByRole("treeitem", { name: "lamp.go" }).waitFor();
  await camera.take(page, "panel-files");
  await app.panel.getByRole("treeitem", { name: "lamp.go" }).click();
  await app.panel.locator(".tok-keyword").first().waitFor();
  await camera.take(page, "panel-file", { manual: true });
  await page.keyboard.press("Alt+3");
  await app.panel.getByRole("button", { name: /New terminal/ }).first().click();
  const shell = app.panel.getByRole("group", { name: /^Terminal \d+ of / });
  await shell.locator(".xterm-rows").getByText("$").first().waitFor();
  await shell.locator("textarea").focus();
  await page.keyboard.type("ls; git status --short\n");
  await shell.locator(".xterm-rows").getByText("M lamp.go").first().waitFor();
  await camera.take(page, "panel-terminal", { manual: true });
  await page.keyboard.press("Control+Escape");
  await page.keyboard.press("Alt+4");
  await app.panel.getByText("3 of 3 done").waitFor();
  await camera.take(page, "panel-plan", { manual: true });
  await page.keyboard.press("Alt+5");
  await app.panel.getByText("session/prompt").last().waitFor();
  const messages = app.panel.getByRole("listbox", { name: "Messages" });
  await messages.focus();
  await page.keyboard.press("End");
  await page.keyboard.press("ArrowUp");
  await app.panel.getByRole("region", { name: /^Message / }).locator("pre").waitFor();
  await camera.take(page, "panel-inspector", { manual: true });
  await page.keyboard.press("Alt+5");

  // A message of the queue, what runs, the menu, the palette, the switcher.
  await show(app, "Run the slow tests");
  for (const text of ["Then the horn, please", "And the tide table after that"]) {
    await app.composer.fill(text);
    await app.button("Queue").waitFor();
    await app.composer.press("Enter");
    await until("an empty composer", async () => (await app.composer.inputValue()) === "");
  }
  await app.composer.fill("Wait: only the tests of the lamp");
  await camera.take(page, "queue", { manual: true });
  await app.composer.fill("");
  await show(app, "Slow in a storm");
  await app.button("Conversation actions").click();
  await page.getByRole("menu").waitFor();
  await camera.take(page, "session-menu", { manual: true });
  await page.keyboard.press("Escape");
  const palette = page.getByRole("dialog", { name: "Commands and conversations" });
  for (const [typed, name, there, manual] of [
    ["", "palette", /New conversation/, true], [">", "palette-actions", /Send the message/], ["@lamp", "palette-files", /lamp\.go/],
    ["#slow", "palette-conversations", /Slow in a storm/], ["?", "palette-help", /First conversation/], ["zeppelin", "palette-nothing"],
  ]) {
    await page.keyboard.press("Control+k");
    await palette.waitFor();
    await page.keyboard.type(typed);
    if (there) await palette.getByRole("option", { name: there }).first().waitFor();
    await camera.take(page, name, { manual });
    await page.keyboard.press("Escape");
    await palette.waitFor({ state: "detached" });
  }
  await page.keyboard.press("Control+f");
  await page.getByRole("search", { name: "Find in this conversation" }).getByRole("textbox").fill("storm");
  await until("the places", async () => /\d+ of \d+/.test(await page.getByRole("search").getByRole("status").first().textContent()));
  await camera.take(page, "find", { manual: true });
  await page.keyboard.press("Escape");
  await page.keyboard.press("Control+Shift+f");
  await page.getByRole("combobox", { name: "Search all conversations" }).waitFor();
  await camera.take(page, "search-empty");
  await page.keyboard.type("storm");
  await page.getByRole("listbox", { name: "Results" }).getByRole("option").first().waitFor();
  await camera.take(page, "search", { manual: true });
  await page.keyboard.press("Escape");
  await page.keyboard.press("F1");
});

scene("beside each other", async (t) => {
  const { desk, app, page, camera } = await openLighthouse(t);
  await fleet(desk);
  await show(app, "Bring the notes up to date");
  await show(app, "Slow in a storm");
  await page.keyboard.press("Control+\\");
  await page.locator(".pane").nth(1).waitFor();
  await camera.take(page, "panes", { manual: true });
  await page.keyboard.press("Control+\\");
  await page.keyboard.press("Control+\\");
  await page.locator(".pane").nth(3).waitFor();
  await camera.take(page, "panes-four");
});

scene("requests", async (t) => {
  const { desk, app, page, camera } = await openLighthouse(t);
  const inbox = async () => {
    await page.keyboard.press("Alt+i");
    await page.getByRole("heading", { name: "Inbox", level: 1 }).waitFor();
  };
  await inbox();
  await camera.take(page, "inbox-empty");
  await begin(desk, "Bring the notes up to date", { message: "edit the notes", done: false });
  await waiting(desk, 1);
  await show(app, "Bring the notes up to date");
  await app.request.waitFor();
  await camera.take(page, "approval", { manual: true });
  await begin(desk, "Tag the release", { message: "run git push --force origin v2", done: false });
  await waiting(desk, 2);
  await show(app, "Tag the release");
  await app.request.waitFor();
  await app.button("Allow by rule…", app.request).click();
  await page.getByRole("menu").waitFor();
  await camera.take(page, "rule-menu", { manual: true });
  await page.getByRole("menuitem", { name: "Edit rule…" }).click();
  await page.getByRole("dialog", { name: "Allow, and remember it" }).getByText(/requests? checked/).waitFor();
  await camera.take(page, "rule", { manual: true });
  await page.keyboard.press("Escape");
  await begin(desk, "Which questions to ask", { agent: "mock", message: "questions", done: false });
  await waiting(desk, 3);
  await show(app, "Which questions to ask");
  await app.request.waitFor();
  await camera.take(page, "question", { manual: true });
  for (const [word, name, title, manual] of [
    ["form", "form", "How shall it look"], ["lookalike", "address", "Sign in to the tides", true], ["unknown request", "unknown", "Something unknown"],
  ]) {
    await begin(desk, title, { agent: "mock", message: word, done: false });
    await show(app, title);
    await app.request.waitFor();
    await camera.take(page, name, { manual });
  }
  await inbox();
  await page.getByRole("option").nth(5).waitFor();
  await camera.take(page, "inbox", { manual: true });
});

scene("undo", async (t) => {
  const { desk, app, page, camera } = await openLighthouse(t);
  await begin(desk, "Slow in a storm", { message: "The lamp turns too fast in a storm." });
  await show(app, "Slow in a storm");
  const footer = app.footers.last();
  await footer.getByRole("button", { name: /2 files/ }).waitFor();
  fs.appendFileSync(path.join(desk.work, "lamp_test.go"), "\n// Mine.\n");
  await footer.getByRole("button", { name: "Revert turn" }).click();
  const dialog = page.getByRole("dialog", { name: "Revert this turn?" });
  await dialog.getByRole("button", { name: /^lamp\.go/ }).click();
  await dialog.locator(".tok-keyword").first().waitFor();
  await camera.take(page, "undo", { manual: true });
});

test("Help shows them, those of the theme, and larger on demand", async (t) => {
  const { page } = await openLighthouse(t);
  await page.keyboard.press("Control+k");
  await page.keyboard.type("?first");
  await page.getByRole("dialog").getByRole("option", { name: "First conversation" }).waitFor();
  await page.keyboard.press("Enter");
  const help = page.getByRole("dialog", { name: "Help" });
  const picture = help.getByRole("button", { name: /^The first screen/ });
  const loaded = (look) => picture.locator(`img.${look}`).evaluate((one) => one.checkVisibility() && one.naturalWidth > 0);
  await picture.waitFor();
  await until("the light picture", () => loaded("light"));
  assert.equal(await loaded("dark"), false);
  await page.emulateMedia({ colorScheme: "dark" });
  await until("the dark picture", () => loaded("dark"));
  assert.equal(await loaded("light"), false);
  await picture.click();
  const large = page.getByRole("dialog", { name: /^The first screen/ });
  await large.waitFor();
  assert.ok((await large.getByRole("img").boundingBox()).width > (await picture.boundingBox()).width);
  await page.keyboard.press("Escape");
  await large.waitFor({ state: "detached" });
  assert.ok(await help.isVisible(), "Escape closed Help as well");
});

test("the manual and its pictures fit each other", () => {
  const pages = fs.readdirSync(docs, { recursive: true }).filter((file) => file.endsWith(".md")).map((file) => path.join(docs, file));
  pages.push(path.join(docs, "../README.md"));
  const named = new Set();
  for (const page of pages) {
    for (const [, alt, target] of fs.readFileSync(page, "utf8").matchAll(/!\[([^\]]*)\]\(([^)\s]+)\)/g)) {
      const file = path.join(path.dirname(page), target);
      assert.ok(fs.existsSync(file), `${page} names ${target}, which is not there`);
      assert.ok(alt.length > 10, `${page} says nothing of ${target} to people who do not see it`);
      named.add(path.basename(file));
    }
  }
  const there = fs.readdirSync(images);
  for (const file of there) {
    const light = file.replace(/-dark\.(\w+)$/, "-light.$1");
    assert.ok(named.has(light), `no page names ${file}`);
    if (/-(light|dark)\.\w+$/.test(file)) assert.ok(there.includes(file.replace(/-(light|dark)\./, (_, look) => (look === "light" ? "-dark." : "-light."))), `${file} stands alone`);
  }
  for (const file of fs.readdirSync(scenes)) assert.ok(there.includes(file.replace(".txt", "-light.png")), `there is no picture of ${file}`);
  const bytes = there.reduce((sum, file) => sum + fs.statSync(path.join(images, file)).size, 0);
  assert.ok(bytes < 6_000_000, `${bytes} bytes of pictures: they are all in the program`);
});
