// Discord beside the window, with the stand-in instead of Discord: a bot is set up, a channel bound, a conversation had in the channel with
// files both ways, an approval answered on both surfaces, and a broken connection reported. This test makes the manual's pictures of
// Discord: DESKHAND_PICTURES (see camera.mjs) writes them.
import assert from "node:assert/strict";
import { execFileSync, spawn } from "node:child_process";
import fs from "node:fs";
import os from "node:os";
import path from "node:path";
import readline from "node:readline";
import { after, test } from "node:test";
import { App, Looks } from "./app.mjs";
import { keepPicture, wanted } from "./camera.mjs";
import { artefacts, Desk, until } from "./desk.mjs";

const root = path.join(import.meta.dirname, "../..");

let built;
/** The stand-in's program, built once. */
function standin() {
  if (built) return built;
  built = path.join(fs.mkdtempSync(path.join(os.tmpdir(), "standin-bin-")), "standin");
  execFileSync("go", ["build", "-o", built, "./e2e/discord/standin"], { cwd: root, env: { ...process.env, CGO_ENABLED: "0" }, stdio: "inherit" });
  return built;
}

after(() => {
  if (built) fs.rmSync(path.dirname(built), { recursive: true, force: true });
});

/** A Discord of the test's own: a person, a stranger, and three channels of a server. */
class Discord {
  static async open(t) {
    const child = spawn(standin(), [], { stdio: ["pipe", "pipe", "inherit"] });
    const ended = new Promise((done) => child.on("exit", done));
    t.after(() => {
      child.stdin.end(); // the stand-in ends with its stdin
      return ended;
    });
    const first = await new Promise((done, fail) => {
      readline.createInterface({ input: child.stdout }).once("line", done);
      ended.then(() => fail(new Error("the stand-in ended")));
    });
    const d = Object.assign(new Discord(), JSON.parse(first));
    d.person = await d.do("user", { name: "Mira" });
    d.lighthouse = await d.do("channel", { guild: d.guild, name: "lighthouse", kind: "text" });
    d.news = await d.do("channel", { guild: d.guild, name: "news", kind: "text" });
    await d.do("fault", { name: "deny", channel: d.news, permissions: String(1 << 11) }); // Send Messages
    d.trusted = path.join(fs.mkdtempSync(path.join(os.tmpdir(), "standin-")), "cdn.pem");
    fs.writeFileSync(d.trusted, d.certificate);
    t.after(() => fs.rmSync(path.dirname(d.trusted), { recursive: true, force: true }));
    return d;
  }

  /** Has somebody do something, or asks what is shown. */
  async do(what, body = {}) {
    const answer = await fetch(`${this.control}${what}`, { method: "POST", body: JSON.stringify(body) });
    const text = await answer.text();
    assert.ok(answer.ok, `${what}: ${answer.status} ${text}`);
    return JSON.parse(text);
  }

  say = (text, { channel = this.lighthouse, user = this.person, files } = {}) => this.do("say", { channel, user, text, files });

  /** Uses a control, and gives the first answer to that. */
  async press({ id, channel }, control, { user = this.person, late = false } = {}) {
    const interaction = await this.do("press", { channel, message: id, user, control, on: late });
    return this.do("answer", { interaction });
  }

  messages = async (channel = this.lighthouse) => (await this.do("messages", { channel })) ?? [];

  /** Waits for a message of the bot that is as wanted, and gives it. */
  async bots(what, wanted, channel) {
    let shown = [];
    try {
      return await until(what, async () => {
        shown = await this.messages(channel);
        return shown.findLast((one) => one.author.id === this.bot && wanted(one));
      });
    } catch (error) {
      throw new Error(`${error.message}; shown: ${JSON.stringify(shown.map(({ author, text, files, controls }) =>
        [author.name, text, files?.map(({ name }) => name), controls?.map(({ label }) => label)]))}`);
    }
  }
}

/** The controls of a message that can be used, in their order. */
const usable = ({ controls = [] }) => controls.filter(({ disabled }) => !disabled);
const asks = (message) => usable(message).some(({ label }) => label === "Allow once");
const settings = (app) => app.page.getByTestId("discord");
const openSettings = (app) => app.settingsOf("Discord");

/** A Deskhand that trusts the stand-in's file server. */
async function deskOf(t, discord) {
  const desk = await Desk.open(t, { env: { SSL_CERT_FILE: discord.trusted } });
  await desk.api("PATCH", "/client/settings", { downloadHosts: discord.cdnHost });
  return desk;
}

/** Sets all of it up without the screen, and binds the channel to the conversation of the desk. */
async function setUp(desk, discord) {
  await desk.api("PUT", "/client/discord", {
    token: discord.token, restUrl: discord.rest, gatewayUrl: discord.gateway, users: [discord.person], enabled: true,
  });
  await connected(desk);
  await desk.api("PUT", `/client/discord/bindings/${discord.lighthouse}`, { session: (await desk.session()).id });
}

const connected = (desk) => until("the line to Discord", async () => {
  const { status, reason, detail } = await desk.api("GET", "/client/discord");
  if (status !== "connected") throw new Error([status, reason, detail].join(" "));
  return true;
});

/** A chart, drawn by the browser. */
async function chart(page) {
  const url = await page.evaluate(() => {
    const canvas = Object.assign(document.createElement("canvas"), { width: 640, height: 320 });
    const draw = canvas.getContext("2d");
    draw.fillStyle = "#f7f7f8";
    draw.fillRect(0, 0, 640, 320);
    [120, 180, 150, 230, 205, 260].forEach((height, n) => {
      draw.fillStyle = n % 2 ? "#2f62e0" : "#7ba3ff";
      draw.fillRect(50 + n * 92, 290 - height, 64, height);
    });
    draw.fillStyle = "#5d636b";
    draw.fillRect(30, 290, 580, 2);
    return canvas.toDataURL("image/png");
  });
  return Buffer.from(url.split(",")[1], "base64");
}

/** Takes a picture of a channel as the stand-in shows it, in light and in dark. */
async function portrait(app, desk, discord, name) {
  fs.mkdirSync(artefacts, { recursive: true });
  const context = await app.page.context().browser().newContext({ viewport: { width: 760, height: 900 }, deviceScaleFactor: 2 });
  try {
    const page = await context.newPage();
    for (const colorScheme of ["light", "dark"]) {
      await page.emulateMedia({ colorScheme, reducedMotion: "reduce" });
      await page.goto(`${discord.view}${discord.lighthouse}`);
      await page.waitForFunction(() => [...document.images].every((image) => image.complete && image.naturalWidth > 0));
      // Where the home of a test is says nothing to those who look at the picture.
      await page.evaluate((home) => {
        const walk = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
        while (walk.nextNode()) walk.currentNode.data = walk.currentNode.data.replaceAll(home, "/home/mira");
      }, desk.home);
      await keep(page, `${name}-${colorScheme}`, (file) => page.screenshot({ path: file, fullPage: true }));
    }
  } finally {
    await context.close();
  }
}

/** Takes a picture, for the manual too where that is wanted. */
async function keep(page, name, take) {
  const file = path.join(artefacts, `${name}.png`);
  await take(file);
  if (wanted) await keepPicture(page, name, fs.readFileSync(file));
}

test("a bot is set up in the settings, and a check says what is missing", async (t) => {
  const looks = new Looks();
  const discord = await Discord.open(t);
  const desk = await deskOf(t, discord);
  const app = await App.open(desk, { agent: "Demo agent" });
  await app.turn("echo The lighthouse");
  await openSettings(app);
  const section = settings(app);
  await section.getByText("How to set it up").waitFor();
  await section.scrollIntoViewIfNeeded();
  await looks.at(app.page, "discord-fresh");
  assert.equal(await app.status.getByText(/Discord/).count(), 0, "it is off, and nothing else");

  // A token that Discord does not know is not kept.
  const token = section.getByLabel("Bot token", { exact: true });
  await section.getByText("Discord at another address").click();
  await section.getByRole("textbox", { name: "API" }).fill(discord.rest);
  await section.getByRole("textbox", { name: "Gateway" }).fill(discord.gateway);
  await token.fill(discord.token.replace(/.{6}$/, "wrong1"));
  await app.button("Save the token", section).click();
  await section.getByRole("alert").getByText(/refuses the token/).waitFor();
  await looks.at(app.page, "discord-refused");
  assert.equal((await desk.api("GET", "/client/discord")).hasToken, false);

  await token.fill(discord.token);
  await app.button("Save the token", section).click();
  await section.getByText("Deskhand", { exact: true }).waitFor();
  await section.getByText(/in a file that only you can read/).waitFor();
  await app.button("Open the invitation", section).waitFor();

  // Who is heard.
  const person = section.getByRole("textbox", { name: "A person’s ID" });
  await person.fill("Mira");
  await app.button("Add", section).click();
  await section.getByRole("alert").getByText(/nobody with the ID Mira/).waitFor();
  await person.fill(discord.person);
  await app.button("Add", section).click();
  await section.getByRole("listitem").filter({ hasText: discord.person }).waitFor();

  // On; the check names the single missing condition.
  await section.getByRole("switch", { name: "Discord on" }).click();
  await section.getByText("Connected", { exact: true }).waitFor();
  await app.button("Check now", section).click();
  await section.getByText("1 thing is missing").waitFor();
  await section.getByText("No channel is bound. Bind one above.").waitFor();
  await looks.at(app.page, "discord-check");

  // A channel for the conversation.
  await app.button("Bind a channel", section).click();
  await section.getByRole("button", { name: /^Choose a channel/ }).click();
  await app.page.getByRole("option", { name: "#lighthouse" }).waitFor();
  await looks.at(app.page, "discord-bind");
  await app.page.getByRole("option", { name: "#lighthouse" }).click();
  await app.button("Bind", section).click();
  const row = section.getByRole("listitem").filter({ hasText: "#lighthouse" });
  await row.getByText("Workshop").waitFor();
  await app.button("Check now", section).click();
  await section.getByText("Nothing is missing").waitFor();
  await section.scrollIntoViewIfNeeded();
  await looks.at(app.page, "discord-set");
  await app.page.setViewportSize({ width: 1280, height: 1400 });
  for (const colorScheme of ["dark", "light"]) {
    await app.page.emulateMedia({ colorScheme, reducedMotion: "reduce" });
    await app.page.mouse.move(2, 700); // away from buttons that would light up
    await keep(app.page, `discord-settings-${colorScheme}`, (file) => section.screenshot({ path: file }));
  }
  await app.page.setViewportSize({ width: 1280, height: 800 });
  await row.getByRole("button", { name: /lighthouse/i }).first().click();
  await app.log.getByText("The lighthouse").first().waitFor();

  // A channel bound for its threads, and a channel in which the bot may not write.
  await openSettings(app);
  await app.button("Bind a channel", section).click();
  await section.getByRole("radio", { name: /A new conversation for each thread/ }).check();
  await section.getByRole("button", { name: /^Choose a channel/ }).click();
  await app.page.getByRole("option", { name: /news.*lacks.*Send Messages/ }).waitFor();
  await app.page.getByRole("option", { name: "#general" }).click();
  await section.getByRole("textbox", { name: "Directory" }).fill(desk.work);
  await app.button("Bind", section).click();
  await section.getByRole("listitem").filter({ hasText: "each thread starts a conversation with Demo agent in ~/project" }).waitFor();

  // Everything is there after a restart, and no answer contains the token.
  await desk.restart();
  await app.page.goto(desk.link);
  await connected(desk);
  await app.composer.waitFor(); // the conversation of before comes first
  await openSettings(app);
  await section.getByText("Connected", { exact: true }).waitFor();
  assert.equal(await section.getByRole("listitem").filter({ hasText: "#" }).count(), 2);
  assert.ok(!JSON.stringify(await desk.api("GET", "/client/discord")).includes(discord.token));
  const log = desk.log + fs.readFileSync(path.join(desk.state, "deskhand", "deskhand.log"), "utf8");
  assert.match(log, /msg=discord status=connected/, "the log says nothing of Discord");
  assert.ok(!log.includes(discord.token), "the token is in the log");

  // Unbound, and forgotten.
  await app.button("Unbind #lighthouse", section).click();
  await row.waitFor({ state: "detached" });
  await app.button("Forget the bot…", section).click();
  await app.button("Forget", section).click();
  await section.getByText("How to set it up").waitFor();
  const left = await desk.api("GET", "/client/discord");
  assert.deepEqual([left.hasToken, left.enabled, left.bindings], [false, false, []]);
  looks.done();
});

test("a conversation goes on in Discord, files and approvals included", async (t) => {
  const looks = new Looks();
  const discord = await Discord.open(t);
  const desk = await deskOf(t, discord);
  const app = await App.open(desk, { agent: "Demo agent" });
  const drawing = await chart(app.page);
  fs.writeFileSync(path.join(desk.work, "visitors.png"), drawing);
  await setUp(desk, discord);

  // A message of the channel arrives in the window; the approval is answered in the channel.
  await discord.say("Please bring the notes up to date.");
  await app.log.getByText("Please bring the notes up to date.").first().waitFor();
  await app.request.waitFor();
  const asked = await discord.bots("the approval", asks);
  const [{ options }] = (await desk.api("GET", "/client/inbox")).items;
  assert.deepEqual(usable(asked).map(({ label }) => label), options.map(({ name }) => name), "the agent's own options, in its order");
  await app.unguarded();
  await looks.at(app.page, "discord-approval");

  // A stranger's press changes nothing, and tells them that alone.
  const stranger = await discord.press(asked, "Allow once", { user: discord.stranger });
  assert.deepEqual([stranger.answer.private, stranger.answer.text], [true, "Not for you."]);
  assert.equal((await desk.api("GET", "/client/inbox")).items.length, 1);

  await discord.press(asked, "Allow once");
  await app.footers.first().getByText("Done", { exact: true }).waitFor();
  await app.log.getByRole("button", { name: /^Read 1 file, edited 1, ran 1 command/ }).click(); // the work folded when the answer went on
  await app.log.getByText(/from Discord/).first().waitFor();
  const closed = await discord.bots("the end of its controls", (one) => one.id === asked.id && usable(one).length === 0);
  assert.ok(closed.text.includes(discord.person), `who answered: ${closed.text}`);
  await looks.at(app.page, "discord-answered");

  // Files: one from the agent, one to the agent. The ids by which the agent's tools find them are no text for people.
  await discord.say("attach visitors.png");
  const given = await discord.bots("the agent's file", (one) => one.files?.some(({ name }) => name === "visitors.png"));
  assert.ok(Buffer.from(given.files[0].data, "base64").equals(drawing));
  await app.footers.nth(1).getByText("Done", { exact: true }).waitFor();
  await app.log.getByRole("article", { name: "File from Demo agent" }).getByText("visitors.png").waitFor();
  await portrait(app, desk, discord, "discord");
  await discord.say("download", { files: [{ name: "week.png", type: "image/png", data: drawing.toString("base64") }] });
  await app.footers.nth(2).getByText("Done", { exact: true }).waitFor();
  await app.log.getByRole("list", { name: "Attached files" }).getByText("week.png").waitFor();
  const [saved] = fs.readdirSync(path.join(desk.home, "Downloads"));
  assert.ok(fs.readFileSync(path.join(desk.home, "Downloads", saved)).equals(drawing));
  assert.equal(await app.page.getByText(/\[\[/).count(), 0, "the block of files is shown");
  await looks.at(app.page, "discord-files");

  // Answered in the window: the controls in the channel go, with a word about the surface of the answer.
  await discord.say("permission");
  const second = await discord.bots("the second approval", (one) => one.id !== asked.id && asks(one));

  // A message during the turn waits in the queue. Edited in the channel, the message keeps its files, also for the agent's tools.
  await discord.say("echo and this", { files: [{ name: "more.png", type: "image/png", data: drawing.toString("base64") }] });
  const waiting = app.page.getByRole("region", { name: "Queue" }).getByRole("listitem").first();
  await waiting.getByRole("list", { name: "Attached files" }).getByText("more.png").waitFor();
  assert.equal(await waiting.locator("[data-part=text]").textContent(), "echo and this");
  await app.button("Edit", waiting).click();
  const field = app.page.getByRole("textbox", { name: "Queued message" });
  assert.equal(await field.inputValue(), "echo and this");
  await field.fill("echo and that");
  await looks.at(app.page, "discord-queue");
  await field.press("Enter");
  await waiting.getByText("echo and that").waitFor();
  const [queued] = (await desk.api("GET", `/client/sessions/${(await desk.session()).id}/queue`)).items;
  assert.match(queued.message, /^echo and that\n\n\[\[lilac\.attachments\]\]\{.*more\.png.*\}\[\[\/lilac\.attachments\]\]$/);

  await app.unguarded();
  await app.request.getByRole("button", { name: /^Allow once/ }).click();
  const gone = await discord.bots("the answer of the window", (one) => one.id === second.id && usable(one).length === 0);
  assert.match(gone.text, /answered in a browser/);
  // Between a card's end and its removal, a press is acknowledged first, and answered by a message of its own.
  const late = await until("the private answer to a late press", async () => {
    const told = await discord.press(second, usable(second)[0].customId, { late: true });
    return told.answer.private && told;
  });
  assert.equal(late.answer.text, "This is no longer asked here.");
  await until("the end of the last turn", async () => (await desk.session()).phase === "ready");
  await app.footers.last().getByText("Done", { exact: true }).waitFor(); // not counted: rows far above are not in the page

  // Nobody else is heard, and they are counted.
  const before = (await desk.entries((await desk.session()).id)).length;
  await discord.say("echo let me in", { user: discord.stranger });
  await discord.say("echo is anybody here", { channel: discord.channel });
  await until("the counters", async () => {
    const { ignored } = await desk.api("GET", "/client/discord");
    return ignored.strangers >= 2 && ignored.unbound >= 1;
  });
  assert.equal((await desk.entries((await desk.session()).id)).length, before);
  assert.ok((await discord.messages(discord.channel)).every(({ author }) => author.id !== discord.bot), "nothing is said where nothing is bound");
  await openSettings(app);
  await settings(app).getByText(/Ignored since the start: 2 messages and presses from strangers/).waitFor();
  looks.done();
});

test("what is wrong with the line is told, and mended by itself", async (t) => {
  const looks = new Looks();
  const discord = await Discord.open(t);
  const desk = await deskOf(t, discord);
  const app = await App.open(desk, { agent: "Demo agent" });
  await setUp(desk, discord);
  await until("an empty status bar", async () => (await app.status.getByText(/Discord/).count()) === 0); // the status bar shows only problems

  await discord.do("fault", { name: "down", on: true });
  await app.button("Discord: Reconnecting…", app.status).waitFor();
  await looks.at(app.page, "discord-reconnecting");
  await discord.say("echo said in between");
  await discord.do("fault", { name: "down", on: false });
  await app.log.getByText("said in between").first().waitFor();
  await until("an empty status bar", async () => (await app.status.getByText(/Discord/).count()) === 0);

  await discord.do("fault", { name: "revoke" });
  await app.button("Discord: Refused", app.status).click();
  const reason = settings(app).getByRole("alert").getByText(/Discord refuses the token/);
  await reason.waitFor();
  await until("the reason in view", () => reason.evaluate((element) => element.getBoundingClientRect().bottom < innerHeight));
  assert.equal(await app.page.evaluate(() => document.documentElement.scrollTop), 0, "the frame of the page has moved");
  await looks.at(app.page, "discord-revoked");
  await discord.do("fault", { name: "renew" });

  // Switched off, Discord shows no problem; on again, it works.
  const knob = settings(app).getByRole("switch", { name: "Discord on" });
  await knob.click();
  await settings(app).getByText("Off", { exact: true }).waitFor();
  assert.equal(await app.status.getByText(/Discord/).count(), 0);
  await discord.do("fault", { name: "content", on: false });
  await knob.click();
  await settings(app).getByRole("alert").getByText(/Message Content Intent/).waitFor();
  await looks.at(app.page, "discord-intent");
  looks.done();
});
