// Every main screen in four sizes of the window, with text as usual and at 150 %: nothing lies outside of the window, no word is cut without
// a tooltip that has it whole, and nothing that can be pressed lies under something else. And what has most colours in high contrast, by axe.
// With E2E_ARTEFACTS, each size is shot in light, dark and high contrast for people to look at.
import assert from "node:assert/strict";
import { test } from "node:test";
import { App, violations } from "./app.mjs";
import { Desk, shoot, until } from "./desk.mjs";

const sizes = [[720, 480], [1024, 700], [1440, 900], [2560, 1440]];
const themes = [["light", "no-preference"], ["dark", "no-preference"], ["dark", "more"]];
const enhanced = { runOnly: { type: "rule", values: ["color-contrast", "color-contrast-enhanced"] }, rules: { "color-contrast-enhanced": { enabled: true } } };

/** Runs in the page: what does not fit, a line each. */
function misfits() {
  const found = new Set();
  const name = (one) => `${one.tagName.toLowerCase()}${one.className && typeof one.className === "string" ? `.${one.className.replace(/ ?svelte-\S+/, "").split(" ").slice(0, 3).join(".")}` : ""} "${(one.getAttribute("aria-label") ?? one.textContent).trim().replace(/\s+/g, " ").slice(0, 40)}"`;
  const { innerWidth: width, innerHeight: height } = window;
  const { scrollWidth } = document.scrollingElement;
  if (scrollWidth > width) found.add(`the page is ${scrollWidth} px wide`);
  const clips = (one) => /hidden|clip|auto|scroll/.test(getComputedStyle(one).overflowX);
  const scrolls = (one) => /auto|scroll/.test(getComputedStyle(one).overflowX) || /auto|scroll/.test(getComputedStyle(one).overflowY);
  /** What is left of the box of an element by everything that clips it. */
  const seen = (one) => {
    let { left, right, top, bottom } = one.getBoundingClientRect();
    for (let at = one.parentElement; at; at = at.parentElement) {
      if (!clips(at) && !scrolls(at)) continue;
      const box = at.getBoundingClientRect();
      [left, right, top, bottom] = [Math.max(left, box.left), Math.min(right, box.right), Math.max(top, box.top), Math.min(bottom, box.bottom)];
    }
    return { left, right, top, bottom };
  };
  for (const one of document.body.querySelectorAll("*")) {
    if (!one.checkVisibility({ visibilityProperty: true, opacityProperty: true }) || one.closest(".visually-hidden, svg, .xterm, [inert]")) continue;
    const style = getComputedStyle(one);
    const own = [...one.childNodes].some((node) => node.nodeType === Node.TEXT_NODE && node.data.trim());
    // The word of a drawn box is for screen readers: its line lies below the box.
    if (own && /hidden|clip/.test(style.overflowX) && !(parseFloat(style.lineHeight) > 2 * one.clientHeight) && one.scrollWidth > one.clientWidth + 1 && !one.closest("[title]:not([title=''])")) found.add(`cut: ${name(one)} (${one.scrollWidth} in ${one.clientWidth} px)`);
    // Words in a box that somebody above cuts off, with no way to scroll there.
    const box = one.getBoundingClientRect();
    if (own && box.width > 0 && !one.closest("[title]:not([title=''])")) {
      for (let at = one.parentElement; at; at = at.parentElement) {
        if (scrolls(at)) break;
        if (!/hidden|clip/.test(getComputedStyle(at).overflowX)) continue;
        const outer = at.getBoundingClientRect();
        if (box.right > outer.right + 1.5 || box.left < outer.left - 1.5) found.add(`cut off: ${name(one)} by ${name(at)}`);
        break;
      }
    }
    if (!one.matches("button, a[href], input, textarea, select, [role=tab], [role=option], summary") || one.disabled) continue;
    if (box.width > 0 && (box.right > width + 1 || box.left < -1) && ![...function* () { for (let at = one.parentElement; at; at = at.parentElement) yield at; }()].some(scrolls)) found.add(`outside: ${name(one)}`);
    const { left, right, top, bottom } = seen(one);
    if (right - left < 8 || bottom - top < 8 || box.height - (bottom - top) > 2) continue; // scrolled away
    const [x, y] = [(left + right) / 2, (top + bottom) / 2];
    if (x < 0 || y < 0 || x >= width || y >= height) continue;
    const hit = document.elementFromPoint(x, y);
    if (!hit || one.contains(hit) || hit.contains(one) || one.labels?.[0]?.contains(hit)) continue;
    if (hit.closest("[role=dialog], [role=menu], [role=listbox], dialog, .scrim, .over, .toasts, .jump, .drawer, .popover, [popover]")) continue; // stands over the page
    const over = hit.closest("button, a[href], input, [role=tab]") ?? hit;
    if (getComputedStyle(hit).pointerEvents !== "none") found.add(`covered: ${name(one)} by ${name(over)}`);
  }
  return [...found];
}

/** Looks at a screen in every size, by figures; contrast = also by axe in high contrast. */
async function look(app, name, found, { contrast = false } = {}) {
  const { page, desk } = app;
  for (const [textSize, of] of [[100, sizes], [150, [sizes[0], sizes[2]]]]) {
    await desk.api("PATCH", "/client/settings", { textSize });
    await page.waitForFunction((size) => (document.documentElement.dataset.text ?? "100") === String(size), textSize);
    for (const [width, height] of of) {
      await page.setViewportSize({ width, height });
      await page.evaluate(() => new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done))));
      const screen = `${name} ${width}x${height} ${textSize} %`;
      for (const what of await page.evaluate(misfits)) found.set(what, [...(found.get(what) ?? []), screen]);
      if (!process.env.E2E_ARTEFACTS) continue;
      for (const [colorScheme, contrast] of themes) {
        if (textSize !== 100 && colorScheme !== "light") continue;
        await page.emulateMedia({ colorScheme, contrast, reducedMotion: "reduce" });
        await shoot(page, `${name}-${width}-${textSize}-${contrast === "more" ? "contrast" : colorScheme}`);
      }
      await page.emulateMedia({ colorScheme: "light", contrast: "no-preference", reducedMotion: "reduce" });
    }
  }
  await desk.api("PATCH", "/client/settings", { textSize: 100 });
  await page.setViewportSize({ width: 1440, height: 900 });
  for (const colorScheme of contrast ? ["light", "dark"] : []) {
    await page.emulateMedia({ colorScheme, contrast: "more", reducedMotion: "reduce" });
    for (const what of await violations(page, enhanced)) found.set(what, [...(found.get(what) ?? []), `${name} ${colorScheme} high contrast`]);
  }
  await page.emulateMedia({ colorScheme: "light", contrast: "no-preference", reducedMotion: "reduce" });
}

const tell = (found) => [...found].map(([what, screens]) => `${what}\n  on ${screens.join(", ")}`).join("\n");

test("screens fit in every size of the window and of the text: start, conversation, panel, terminals", async (t) => {
  const found = new Map();
  const desk = Desk.make(t, { env: { PS1: "$ " } });
  await desk.start();
  const app = await App.open(desk, { viewport: { width: 1440, height: 900 } });
  const { page } = app;
  await look(app, "start", found);
  await app.write("Fix the failing test", { agent: "Demo agent" });
  await app.request.waitFor();
  await look(app, "approval", found, { contrast: true });
  await app.button(/^Allow/, app.request).first().click();
  await app.footers.first().waitFor();
  await look(app, "answer", found);
  await app.begin("Demo agent", desk.work);
  await app.turn("markdown");
  await app.turn("thought plan diff terminal media notice");
  for (const name of [/^Edit.*greeting/, /go test/]) await app.log.getByRole("button", { name }).first().click();
  await app.log.getByRole("figure", { name: /greeting\.go/ }).scrollIntoViewIfNeeded();
  await look(app, "tools", found, { contrast: true });
  await app.button("Status and memory", app.status).click();
  await app.statusReport.getByRole("row").first().waitFor();
  await look(app, "status", found);
  await page.keyboard.press("Escape");

  for (const [keys, name] of [["Alt+1", "changes"], ["Alt+2", "files"], ["Alt+4", "plan"], ["Alt+5", "inspector"]]) {
    await page.keyboard.press(keys);
    await page.getByRole("tab", { selected: true }).waitFor();
    await look(app, name, found, { contrast: name === "changes" });
  }
  // Terminals go to the bottom, over the whole width: 80 columns and more in the smallest window.
  await page.keyboard.press("Alt+3");
  const side = page.getByRole("complementary", { name: "Side panel" });
  await app.button("New terminal", side).click();
  const shell = page.getByRole("group", { name: /^Terminal \d+ of / });
  await shell.locator(".xterm-rows").getByText("$").first().waitFor();
  await look(app, "terminal-side", found);
  await app.button("Move the terminals to the bottom", side).click();
  const bottom = page.getByRole("complementary", { name: "Terminals" });
  await bottom.waitFor();
  await side.waitFor({ state: "detached" });
  await page.setViewportSize({ width: 720, height: 480 });
  await shell.locator("textarea").focus();
  await page.keyboard.type("tput cols; echo done\n");
  await until("80 columns", async () => Number(/^\s*(\d+)\s*$/m.exec(await shell.locator(".xterm-rows").innerText())?.[1]) >= 80);
  await page.setViewportSize({ width: 1440, height: 900 });
  await look(app, "terminal-bottom", found, { contrast: true });
  await page.keyboard.press("Control+Escape");
  await page.keyboard.press("Alt+3");
  await bottom.waitFor({ state: "detached" });
  await page.keyboard.press("Alt+3");
  await shell.locator(".xterm-rows").getByText("done").first().waitFor(); // the same terminal
  await app.button("Move the terminals to the side panel", bottom).click();
  await page.getByRole("tab", { name: "Terminal", selected: true }).waitFor();
  await bottom.waitFor({ state: "detached" });
  assert.equal(tell(found), "");
});

test("screens fit in every size of the window and of the text: requests, inbox, settings, search, palette", async (t) => {
  const found = new Map();
  const desk = await Desk.open(t);
  const app = await App.open(desk, { viewport: { width: 1440, height: 900 } });
  const { page } = app;
  for (const word of ["question", "form"]) {
    await app.begin("Demo agent", desk.work);
    await app.send(word);
    await app.request.waitFor();
    await look(app, word, found);
  }
  await app.button(/^Inbox/, app.sidebar).click();
  await page.getByRole("option").nth(1).waitFor();
  await look(app, "inbox", found);
  for (const part of ["General", "Agents", "MCP servers", "Skills", "Appearance", "Keyboard", "Permissions", "Notifications"]) {
    await app.settingsOf(part);
    await look(app, `settings-${part.toLowerCase().replaceAll(" ", "-")}`, found);
  }
  await page.keyboard.press("Control+Shift+f");
  await page.getByRole("combobox", { name: "Search all conversations" }).fill("question");
  await page.getByRole("listbox", { name: "Results" }).getByRole("option").first().waitFor();
  await look(app, "search", found);
  await page.keyboard.press("Control+k");
  await page.getByRole("dialog").waitFor();
  await look(app, "palette", found);
  assert.equal(tell(found), "");
});
