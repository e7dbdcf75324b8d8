// The queue: what is sent while a turn runs waits above the composer, goes out in its turn, and is held after a stop.
import assert from "node:assert/strict";
import { test } from "node:test";
import { App, Looks } from "./app.mjs";
import { Desk, until } from "./desk.mjs";

const rows = (app) => app.page.getByRole("region", { name: "Queue" }).getByRole("listitem");
const texts = (app) => rows(app).locator("[data-part=text]").allTextContents();
const prompts = async (desk) =>
  (await desk.entries((await desk.session()).id)).filter(({ kind }) => kind === "user").map(({ text }) => text);

async function shows(app, want) {
  await until(`queue ${want}`, async () => JSON.stringify(await texts(app)) === JSON.stringify(want));
}

test("rows are queued, moved, edited, deleted and go out in their turn", async (t) => {
  const looks = new Looks();
  const desk = await Desk.open(t);
  const app = await App.open(desk, { agent: "Demo agent" });
  await app.send("permission");
  await app.request.waitFor();
  for (const text of ["plan", "thought", "markdown", "limit"]) {
    await app.composer.fill(text);
    await app.button("Queue").waitFor();
    await app.composer.press("Enter");
    await until("empty composer", async () => (await app.composer.inputValue()) === "");
  }
  await shows(app, ["plan", "thought", "markdown", "limit"]);
  await app.composer.fill("and one more");
  await looks.at(app.page, "queue");
  await app.composer.fill("");

  // By keyboard: to the first row, two down, and moved to the top.
  await rows(app).first().locator("[data-part=text]").focus();
  for (const key of ["ArrowDown", "ArrowDown", "Alt+ArrowUp"]) await app.page.keyboard.press(key);
  await shows(app, ["plan", "markdown", "thought", "limit"]);
  await until("focus on the moved row", () => app.page.evaluate(() => document.activeElement.textContent === "markdown"));
  await app.page.keyboard.press("Alt+ArrowUp");
  await shows(app, ["markdown", "plan", "thought", "limit"]);
  await app.button("Move down", rows(app).first()).click();
  await shows(app, ["plan", "markdown", "thought", "limit"]);

  await app.holds(5_000);
  await app.button("Delete", rows(app).nth(1)).click();
  await shows(app, ["plan", "thought", "limit"]);
  await app.button("Undo").click();
  await shows(app, ["plan", "markdown", "thought", "limit"]);
  await app.button("Delete", rows(app).nth(3)).click();
  await app.button("Undo").waitFor(); // with that answer the focus goes to another row
  await app.button("Edit", rows(app).nth(1)).click();
  const field = app.page.getByRole("textbox", { name: "Queued message" });
  await field.fill("diff");
  await field.press("Enter");
  await shows(app, ["plan", "diff", "thought"]);
  const { id } = await desk.session();
  await until("nothing held", async () => (await desk.api("GET", `/client/sessions/${id}/queue`)).items.every(({ held }) => !held));

  await app.request.getByRole("button", { name: /^Allow once/ }).click();
  await app.footers.nth(3).waitFor();
  assert.deepEqual(await prompts(desk), ["permission", "plan", "diff", "thought"]);
  assert.equal(await rows(app).count(), 0);
  looks.done();
});

/** Sends a message that is on its way until it is released. */
async function onItsWay(app, text) {
  let release;
  const released = new Promise((resolve) => (release = resolve));
  await app.page.route("**/prompt", async (route) => {
    await released;
    await route.continue();
  });
  const asked = app.page.waitForRequest("**/prompt");
  await app.send(text);
  await asked;
  return release;
}

test("a message that is sent while the one before it is on its way goes after it", async (t) => {
  const desk = await Desk.open(t);
  const app = await App.open(desk, { agent: "Demo agent" });
  await app.send("slow");
  await app.log.getByText("tick 1").first().waitFor();
  const release = await onItsWay(app, "plan");
  await app.send("thought");
  release();
  await shows(app, ["plan", "thought"]);
  await until("empty composer", async () => (await app.composer.inputValue()) === ""); // the answer may come after the event
});

test("Enter pressed twice sends a message once, and nothing that is typed since", async (t) => {
  const desk = await Desk.open(t);
  const app = await App.open(desk, { agent: "Demo agent" });
  await app.send("slow");
  await app.log.getByText("tick 1").first().waitFor();
  const release = await onItsWay(app, "plan");
  await app.composer.press("Enter");
  await app.page.getByText("Sending…").waitFor();
  await app.composer.fill("thou");
  const arrived = app.page.waitForResponse("**/prompt");
  release();
  await arrived;
  await app.page.getByText("Sending…").waitFor({ state: "detached" });
  await shows(app, ["plan"]);
  assert.equal(await app.composer.inputValue(), "thou");
});

test("what is queued is held after a stop until it is sent", async (t) => {
  const looks = new Looks();
  const desk = await Desk.open(t);
  const app = await App.open(desk, { agent: "Demo agent" });
  await app.send("slow");
  await app.log.getByText("tick 1").first().waitFor(); // a stop of what has not begun takes the message back
  await app.send("plan");
  await app.send("thought");
  await shows(app, ["plan", "thought"]);
  await app.button("Stop").click();
  await rows(app).first().getByText("Held: the turn was stopped").waitFor();
  await looks.at(app.page, "queue-held");
  assert.deepEqual(await prompts(desk), ["slow"]);
  await app.button("Send", rows(app).nth(1)).click();
  await app.footers.nth(1).waitFor();
  await shows(app, ["plan"]);

  // Interrupting goes next, and takes what is held not along.
  await app.send("slow");
  await app.button("Stop").waitFor();
  await app.composer.fill("limit");
  await app.composer.press("Enter"); // Control+Enter steers this agent
  await shows(app, ["plan", "limit"]);
  await app.button("Interrupt and send this", rows(app).nth(1)).click();
  await app.footers.nth(3).waitFor();
  await shows(app, ["plan"]);
  assert.deepEqual(await prompts(desk), ["slow", "thought", "slow", "limit"]);
  await app.page.setViewportSize({ width: 720, height: 480 });
  await looks.at(app.page, "queue-small");
  looks.done();
});
