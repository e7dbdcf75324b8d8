// Conversations beside each other, and the side panel beside them.
import assert from "node:assert/strict";
import { test } from "node:test";
import { App, Looks } from "./app.mjs";
import { Desk, shoot, until } from "./desk.mjs";

/** The panes on the screen, by the titles of their conversations. */
const titles = (app) => app.page.locator(".pane h1").allTextContents();

async function two(t, options) {
  const desk = await Desk.open(t);
  const app = await App.open(desk, { agent: "Demo agent", ...options });
  await app.turn("plan for the first");
  await app.button("New conversation", app.sidebar).click();
  await app.begin("Demo agent", desk.work);
  await app.turn("plan for the second");
  return { desk, app };
}

test("two conversations beside each other, by keys alone", async (t) => {
  const looks = new Looks();
  const { desk, app } = await two(t);
  const { page } = app;
  await page.keyboard.press("Control+\\");
  await page.locator(".pane").nth(1).waitFor();
  assert.deepEqual(await titles(app), ["plan for the second", "plan for the first"]);

  // What is typed goes to the one that is worked in; the other goes on.
  await page.locator(".pane.active").getByRole("textbox", { name: "Message" }).fill("slow tick 60s");
  await page.keyboard.press("Enter");
  await page.keyboard.press("Control+Alt+ArrowLeft");
  await until("the left one is worked in", async () => (await page.locator(".pane.active h1").textContent()) === "plan for the second");
  const left = page.locator(".pane").nth(0).getByRole("textbox", { name: "Message" });
  assert.equal(await left.evaluate((field) => field === document.activeElement), true, "its composer has the focus");
  await left.fill("here");
  await page.keyboard.press("Enter");
  await page.locator(".pane").nth(0).getByRole("log").getByText("here", { exact: true }).first().waitFor();
  await looks.at(page, "panes-two");

  // A window that is loaded again shows them again, and works in the same one.
  await page.reload();
  await page.locator(".pane").nth(1).waitFor();
  assert.deepEqual(await titles(app), ["plan for the second", "plan for the first"]);
  assert.equal(await page.locator(".pane.active h1").textContent(), "plan for the second");

  // Closing one leaves the other, and ends no turn.
  await page.keyboard.press("Control+Alt+ArrowRight");
  await page.keyboard.press("Alt+w");
  await until("one is left", async () => (await titles(app)).length === 1);
  assert.deepEqual(await titles(app), ["plan for the second"]);
  const sessions = await desk.api("GET", "/client/sessions");
  assert.equal(sessions.items.find((one) => one.title === "plan for the first").phase, "working");
  looks.done();
});

test("four at the most, and each conversation once", async (t) => {
  const looks = new Looks();
  const { desk, app } = await two(t);
  for (const text of ["plan three", "plan four", "plan five"]) {
    await app.button("New conversation", app.sidebar).click();
    await app.begin("Demo agent", desk.work);
    await app.turn(text);
  }
  for (let n = 0; n < 4; n++) await app.page.keyboard.press("Control+\\");
  await until("there are four", async () => (await titles(app)).length === 4);
  assert.equal(new Set(await titles(app)).size, 4);
  await looks.at(app.page, "panes-four");
  // The list goes to what stands there already.
  const last = (await titles(app))[3];
  await app.sidebar.getByRole("treeitem", { name: new RegExp(last) }).click();
  assert.equal(await app.page.locator(".pane.active h1").textContent(), last);
  assert.equal((await titles(app)).length, 4);
  // In a window without room for them the one that is worked in has it all.
  await app.page.setViewportSize({ width: 720, height: 480 });
  await until("one is shown", async () => (await titles(app)).join() === last);
  looks.done();
});

test("the side panel keeps its tab and width, and lies over a small window", async (t) => {
  const looks = new Looks();
  const desk = await Desk.open(t);
  const app = await App.open(desk, { agent: "Demo agent", permissions: ["clipboard-read", "clipboard-write"] });
  const { page } = app;
  await app.turn("plan");
  const panel = page.getByRole("complementary", { name: "Side panel" });
  await page.keyboard.press("Alt+4");
  await panel.getByRole("tab", { name: "Plan & context", selected: true }).waitFor();
  await page.keyboard.press("Alt+4");
  await panel.waitFor({ state: "hidden" });
  await page.keyboard.press("Control+j");
  await panel.getByRole("tab", { selected: true }).press("ArrowRight");
  await panel.getByRole("tab", { name: "Inspector", selected: true }).waitFor();

  const edge = panel.getByRole("separator");
  const before = (await panel.boundingBox()).width;
  assert.equal(Math.round(before), (1280 - 248) / 2, "half of what the sidebar leaves");
  await edge.press("ArrowLeft");
  assert.equal(Math.round((await panel.boundingBox()).width), 532);
  await page.reload();
  await panel.getByRole("tab", { name: "Inspector", selected: true }).waitFor();
  assert.equal(Math.round((await panel.boundingBox()).width), 532);
  await edge.dblclick();
  assert.equal(Math.round((await panel.boundingBox()).width), 516);
  await app.button("Make the side panel larger", panel).click();
  assert.deepEqual([(await panel.boundingBox()).x, (await panel.boundingBox()).width].map(Math.round), [248, 1032]);
  await looks.at(page, "panel-whole");
  await app.button("Make the side panel smaller", panel).click();
  assert.equal(Math.round((await panel.boundingBox()).width), 516);

  // What is told for a moment lies over nothing that is written in or pressed, in whatever window.
  const box = (part) => part.boundingBox();
  for (const [width, height] of [[1440, 900], [1024, 700], [720, 480]]) {
    await page.setViewportSize({ width, height });
    if (await panel.isVisible()) await page.keyboard.press("Control+j");
    await panel.waitFor({ state: "hidden" });
    await app.button("Conversation actions").click();
    await page.getByRole("menuitem", { name: "Copy session ID" }).click();
    const toast = page.locator(".toast");
    await toast.first().waitFor();
    const told = await box(page.locator(".toasts"));
    const composer = await box(page.locator("form, .composer").filter({ has: app.composer }).last());
    assert.ok(told.y + told.height <= composer.y, `at ${width} it lies over the composer`);
    assert.ok(told.x >= 0 && told.x + told.width <= width, `at ${width} it stands at ${told.x}`);
    await page.keyboard.press("Control+j");
    const beside = await box(panel);
    const clear = width === 1024 ? told.y + told.height < beside.y + beside.height / 2 : told.x + told.width <= beside.x;
    assert.ok(clear, `at ${width} it lies over the panel`);
    await shoot(page, `toast-${width}`);
    await app.button("Dismiss", toast.first()).click({ timeout: 6_000 }).catch(() => {}); // it goes by itself as well
    await toast.waitFor({ state: "detached" });
  }
  await page.setViewportSize({ width: 1024, height: 700 });
  await panel.waitFor();
  await looks.at(page, "panel-over");
  const log = await app.log.boundingBox();
  assert.ok(log.width > 700, "the conversation keeps its width below it");
  await panel.getByRole("tab", { selected: true }).press("Escape");
  await panel.waitFor({ state: "hidden" });
  assert.equal(await app.composer.evaluate((field) => field === document.activeElement), true, "the focus is back");
  looks.done();
});
