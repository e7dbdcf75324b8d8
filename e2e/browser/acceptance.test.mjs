// The items of the screen's acceptance list without a test beside their feature: nothing is out of reach at 200 %, everybody can read the
// panel's tabs, a stream goes on after the computer has slept, and without agents or a network there is the demo agent.
import assert from "node:assert/strict";
import { test } from "node:test";
import { App, Looks } from "./app.mjs";
import { Desk, shoot } from "./desk.mjs";

const small = { width: 720, height: 450 }; // 1440x900 at 200 %

/** What of a page cannot be reached: controls that are cut off where nothing scrolls to them. */
function outOfReach() {
  const bad = [];
  const name = (one) => `${one.tagName.toLowerCase()} ${(one.getAttribute("aria-label") ?? one.textContent ?? "").trim().slice(0, 60)}`;
  if (document.documentElement.scrollWidth > innerWidth) bad.push(`the page is ${document.documentElement.scrollWidth} wide`);
  if (document.documentElement.scrollHeight > innerHeight) bad.push(`the page is ${document.documentElement.scrollHeight} high`);
  const scrolls = (box, way) => /auto|scroll/.test(getComputedStyle(box)[way]);
  for (const one of document.querySelectorAll("button, a[href], input, select, textarea, [role=tab], [role=option], [role=treeitem]")) {
    if (!one.checkVisibility({ checkOpacity: true, checkVisibilityCSS: true })) continue;
    if (one.classList.contains("scrim") || one.closest("[inert], .visually-hidden")) continue;
    let { left, right, top, bottom } = one.getBoundingClientRect();
    if (right - left < 2 || bottom - top < 2) continue; // visible only to screen readers
    const whole = { width: right - left, height: bottom - top };
    let freeX = false, freeY = false;
    for (let box = one.parentElement; box; box = box.parentElement) {
      const style = getComputedStyle(box);
      const edge = box.getBoundingClientRect();
      freeX ||= scrolls(box, "overflowX");
      freeY ||= scrolls(box, "overflowY");
      if (!freeX && style.overflowX !== "visible") [left, right] = [Math.max(left, edge.left), Math.min(right, edge.right)];
      if (!freeY && style.overflowY !== "visible") [top, bottom] = [Math.max(top, edge.top), Math.min(bottom, edge.bottom)];
    }
    if (!freeX && (Math.min(right, innerWidth) - Math.max(left, 0) < whole.width - 1)) bad.push(`${name(one)}: ${Math.round(left)} to ${Math.round(right)} of ${Math.round(whole.width)}`);
    if (!freeY && (Math.min(bottom, innerHeight) - Math.max(top, 0) < whole.height - 1)) bad.push(`${name(one)}: ${Math.round(top)} to ${Math.round(bottom)} of ${Math.round(whole.height)}`);
  }
  return bad;
}

test("at 200 % and with text of 150 % every control is in reach", async (t) => {
  const desk = await Desk.open(t);
  const app = await App.open(desk, { agent: "Demo agent", viewport: small });
  const { page } = app;
  await app.send("Please show me around");
  await app.request.getByText("Allow once").waitFor();
  const bad = [];
  const look = async (name) => {
    for (const size of ["100%", "150%"]) {
      await page.evaluate((size) => document.documentElement.style.setProperty("--text-scale", String(parseInt(size) / 100)), size);
      await shoot(page, `zoom-${name}-${parseInt(size)}`);
      for (const one of await page.evaluate(outOfReach)) bad.push(`${name} at ${size}: ${one}`);
    }
    await page.evaluate(() => document.documentElement.style.removeProperty("--text-scale"));
  };
  await look("request");
  await app.unguarded();
  await app.button("Allow once", app.request).click();
  await app.footers.first().waitFor();
  await look("conversation");
  const panel = page.getByRole("complementary", { name: "Side panel" });
  for (const tab of ["Changes", "Files", "Terminal", "Plan & context", "Inspector"]) {
    if (!(await panel.isVisible())) await page.keyboard.press("Alt+1");
    await panel.getByRole("tab", { name: tab }).click();
    await look(`panel-${tab.split(" ")[0].toLowerCase()}`);
  }
  await app.button("Close the side panel", panel).click();
  await app.button("Show or hide the sidebar").click();
  await app.sidebar.waitFor();
  await look("sidebar");
  await page.keyboard.press("Control+b");
  for (const [keys, heading] of [["Alt+i", "Inbox"], ["Alt+a", "Agents"], ["Alt+m", "MCP"], ["Alt+s", "Skills"], ["Control+,", "Settings"], ["Alt+n", "New conversation"]]) {
    await page.keyboard.press(keys);
    await page.getByRole("heading", { name: new RegExp(heading) }).first().waitFor();
    await look(heading.split(" ")[0].toLowerCase());
  }
  assert.equal(bad.join("\n"), "");
});

test("axe about the five tabs of the side panel, each with what it is for", async (t) => {
  const desk = await Desk.open(t);
  const looks = new Looks();
  const app = await App.open(desk, { agent: "Demo agent", viewport: { width: 1440, height: 900 } });
  const { page } = app;
  await app.send("Please show me around");
  await app.request.getByText("Allow once").waitFor();
  await app.unguarded();
  await app.button("Allow once", app.request).click();
  const footer = app.footers.first();
  await footer.getByText("Done", { exact: true }).waitFor();
  await footer.getByRole("button", { name: /1 file/ }).click();
  const panel = page.getByRole("complementary", { name: "Side panel" });
  await panel.getByRole("tree", { name: "Changed files" }).waitFor();
  await looks.at(page, "acceptance-changes");
  await app.composer.press("Alt+2");
  await panel.getByRole("treeitem", { name: "deskhand-demo.md" }).click();
  await panel.getByRole("button", { name: "Back to the files" }).waitFor();
  await looks.at(page, "acceptance-files");
  await app.composer.press("Alt+3");
  await app.button("New terminal", panel).first().click();
  await panel.getByRole("group", { name: /^Terminal 1 of / }).waitFor();
  await looks.at(page, "acceptance-terminal");
  await app.composer.press("Alt+4");
  await panel.getByText("3 of 3 done").waitFor();
  await looks.at(page, "acceptance-plan");
  await app.composer.press("Alt+5");
  await panel.getByText("session/prompt").first().waitFor();
  await looks.at(page, "acceptance-inspector");
  looks.done();
});

test("a stream whose line was cut goes on by itself, whole", async (t) => {
  const desk = await Desk.open(t);
  const app = await App.open(desk, { agent: "Demo agent" });
  const { page } = app;
  await app.send("stream 30/s 10s");
  await app.log.locator("[data-row=agent]").first().waitFor();
  await page.context().setOffline(true);
  await app.status.getByText("Reconnecting", { exact: false }).or(page.getByText("Reconnecting", { exact: false })).first().waitFor();
  await page.context().setOffline(false);
  await page.evaluate(() => window.dispatchEvent(new Event("online")));
  await app.footers.first().getByText("Done", { exact: true }).waitFor();
  const { id } = await desk.session();
  const before = await app.log.locator("[data-row=agent]").allInnerTexts();
  assert.ok((await desk.entries(id)).some((entry) => entry.kind === "agent" && entry.text.length === 30 * 10 * 6));
  await page.reload(); // as when the whole transcript is read at once
  await app.footers.first().waitFor();
  assert.deepEqual(await app.log.locator("[data-row=agent]").allInnerTexts(), before);
});

// Every other test has the agent of tests in the place of the built-in one.
test("the built-in demo agent has a short help, and nothing that misbehaves", async (t) => {
  const desk = await Desk.open(t, { env: { DESKHAND_DEMO_AGENT: "" } });
  const app = await App.open(desk, { agent: "Demo agent" });
  await app.turn("help");
  const help = (await desk.entries((await desk.session()).id)).find(({ kind }) => kind === "agent").text.trim();
  assert.ok(help.split("\n").length <= 10, help);
  assert.match(help, /`plan`[^]*`permission`[^]*`question`/);
  assert.doesNotMatch(help, /crash|hang|slow/);
  await app.turn("plan");
  await app.send("crash");
  await app.unguarded();
  await app.button("Allow once", app.request).click();
  await app.log.getByText("The edit is written.").waitFor();
});
