// The sounds of a conversation that waits or ends while nobody looks at it.
import assert from "node:assert/strict";
import { test } from "node:test";
import { App, Looks } from "./app.mjs";
import { Desk, until } from "./desk.mjs";

/** Notes what a page plays, and ends it at once: a machine of tests has no loudspeaker. */
const listen = (page) =>
  page.evaluate(() => {
    window.played = [];
    HTMLMediaElement.prototype.play = function () {
      window.played.push(/(waits|ended)-/.exec(this.src)?.[1] ?? this.src);
      setTimeout(() => this.dispatchEvent(new Event("ended")));
      return Promise.resolve();
    };
  });
const played = (page) => page.evaluate(() => window.played);

test("a sound tells of a conversation that nobody looks at, once, in one of several pages", async (t) => {
  const desk = await Desk.open(t);
  const looks = new Looks();
  const app = await App.open(desk, { agent: "Demo agent" });
  const { page } = app;
  await listen(page);
  const { id } = await desk.session();

  // It is off until somebody wants it, and can be heard before.
  await app.settingsOf("Notifications");
  const on = page.getByRole("checkbox", { name: /^Play a sound/ });
  assert.equal(await on.isChecked(), false);
  await page.getByRole("button", { name: "Try it" }).click();
  await until("both sounds", async () => (await played(page)).join() === "waits,ended");
  await on.check();
  await looks.at(page, "settings-sound");
  looks.done();
  await until("the setting", async () => (await desk.api("GET", "/client/settings")).sounds);
  await listen(page);

  // The settings are open, and not the conversation; a second page has another conversation open.
  const second = await page.context().newPage();
  await second.goto((await desk.api("POST", "/client/links")).url);
  const other = new App(second, desk);
  await other.sidebar.getByRole("treeitem").first().waitFor();
  await other.begin("Demo agent", desk.work);
  await listen(other.page);
  await page.bringToFront();
  await desk.api("POST", `/client/sessions/${id}/prompt`, { message: "help", when: "queue" });
  const all = async () => [...(await played(page)), ...(await played(other.page))];
  await until("the end", async () => (await all()).length > 0);
  await new Promise((done) => setTimeout(done, 1_500));
  assert.deepEqual(await all(), ["ended"]);

  // Who looks at it hears nothing.
  await app.show(id);
  await listen(page);
  await listen(other.page);
  await page.bringToFront();
  await app.turn("help");
  await new Promise((done) => setTimeout(done, 1_500));
  assert.deepEqual(await all(), []);

  // An agent that asks has a sound of its own.
  await app.settingsOf("Notifications");
  await new Promise((done) => setTimeout(done, 1_000)); // there is one sound in two seconds
  await desk.api("POST", `/client/sessions/${id}/prompt`, { message: "hello", when: "queue" });
  await until("the request", async () => (await all()).length > 0);
  assert.deepEqual(await all(), ["waits"]);
  assert.deepEqual(desk.complaints, []);
});
