// Failures of agents, of directories and of Deskhand itself, as a person sees them.
import assert from "node:assert/strict";
import fs from "node:fs";
import path from "node:path";
import { test } from "node:test";
import { App } from "./app.mjs";
import { Desk, program, until } from "./desk.mjs";

test("an agent that is killed in mid-stream shows its end, and restarts", async (t) => {
  const desk = await Desk.open(t);
  const app = await App.open(desk, { agent: "Demo agent" });
  await app.send("slow");
  await app.log.getByText("tick 5").waitFor();
  process.kill(await desk.agent(), "SIGKILL");
  await app.exit.getByText("Demo agent was ended by SIGKILL.").waitFor();
  await app.footers.getByText("Agent ended", { exact: true }).waitFor();
  await app.button("Restart", app.exit).click();
  await app.log.getByText("restarted and resumed the conversation").waitFor();
  await app.turn("help");
  assert.equal(await app.exit.getByRole("button").count(), 0, "an old end still offers to restart");
});

test("a window that ends shows again what was being read", async (t) => {
  const desk = await Desk.open(t);
  const app = await App.open(desk, { agent: "Demo agent" });
  for (const message of ["markdown", "echo What was read", "markdown", "markdown"]) await app.turn(message);
  const read = app.log.locator("[data-prompt]", { hasText: "What was read" });
  const top = () => read.evaluate((row) => Math.round(row.getBoundingClientRect().top));
  await until("an empty composer", async () => (await app.composer.inputValue()) === "");
  const { id } = await desk.session();
  const { seq } = (await desk.entries(id)).find((entry) => entry.kind === "user" && entry.text.includes("What was read"));
  for (const _ of [1, 2, 3]) await app.composer.press("Alt+ArrowUp");
  await until("the place", async () => Math.abs((await top()) - (await app.log.boundingBox()).y) < 120);
  const kept = () => app.page.evaluate(() => JSON.parse(localStorage.getItem("deskhand.reading") ?? "[]")[0]?.[1]);
  await until("the place is kept", async () => (await kept()) === seq);
  await app.page.reload();
  await read.waitFor();
  await until("the place again", async () => Math.abs((await top()) - (await app.log.boundingBox()).y) < 120);
  // At the end there is nothing to come back to.
  await app.log.press("End");
  await until("the place is forgotten", () => app.page.evaluate(() => localStorage.getItem("deskhand.reading") === "[]"));
});

test("an agent that crashes shows its exit code and its last words", async (t) => {
  const desk = await Desk.open(t);
  const app = await App.open(desk, { agent: "Demo agent" });
  await app.turn("crash", "Agent ended");
  await app.exit.getByText("Demo agent ended with exit code 3.").waitFor();
  await app.exit.getByText("fatal: the prompt asked for a crash").waitFor();
  await app.log.getByText("I am about to finish this senten").waitFor();
  await app.log.getByRole("button", { name: /Something that is never finished.*Cancelled/ }).waitFor();
  // The next prompt alone also starts the agent again.
  await app.turn("help");
});

test("Deskhand that is killed in mid-stream loses nothing that was shown", async (t) => {
  const desk = await Desk.open(t);
  const app = await App.open(desk, { agent: "Demo agent" });
  await app.turn("diff");
  await app.send("slow");
  await app.log.getByText("tick 10").waitFor();
  await desk.kill();
  await desk.gone();
  const shown = await app.transcript();
  const ticks = (rows) => rows.findLast((row) => /^agent: /.test(row)).match(/tick \d+/g);

  await desk.start(Number(new URL(desk.url).port));
  await app.status.getByText("Connected").waitFor();
  const now = await app.transcript();
  assert.deepEqual(now.slice(0, shown.length - 1), shown.slice(0, -1));
  assert.deepEqual(ticks(now).slice(0, ticks(shown).length), ticks(shown));
  await app.log.getByText("Deskhand was interrupted here").waitFor();
  await app.footers.getByText("Interrupted", { exact: true }).waitFor();
  await app.turn("help");
});

test("Deskhand that is killed in a burst of updates keeps all that was shown of it", async (t) => {
  const desk = await Desk.open(t);
  const app = await App.open(desk, { agent: "Demo agent" });
  await app.send("burst");
  const numbers = async () => (await app.log.getByRole("article", { name: "Answer" }).first().innerText()).match(/\d+/g) ?? [];
  await app.log.getByText("100").first().waitFor();
  await desk.kill();
  await desk.gone();
  const shown = await numbers();
  await desk.start(Number(new URL(desk.url).port));
  await app.status.getByText("Connected").waitFor();
  const kept = await numbers();
  t.diagnostic(`${shown.length} numbers were shown, ${kept.length} are kept`);
  assert.deepEqual(kept.slice(0, shown.length), shown);
  assert.deepEqual(kept, kept.map((_, n) => String(n + 1)), "a hole");
});

test("a request whose agent is gone cannot be answered any more", async (t) => {
  const desk = await Desk.open(t);
  const app = await App.open(desk, { agent: "Demo agent" });
  await app.send("permission");
  await app.request.waitFor();
  const { id } = (await desk.api("GET", "/client/inbox")).items[0];
  await desk.kill();
  await desk.gone();
  await desk.start(Number(new URL(desk.url).port));
  await app.status.getByText("Connected").waitFor();
  await app.log.getByText("Expired: the agent ended").waitFor();
  assert.equal(await app.request.count(), 0);
  const { status, data } = await desk.call("POST", `/client/requests/${id}/answer`, { optionId: "allow-once" });
  assert.deepEqual([status, data.code, data.params.status], [409, "request.resolved", "expired"]);
  assert.ok(!fs.existsSync(path.join(desk.work, "deskhand-demo.md")));
});

test("an agent that ignores everything, and its child, end with Deskhand", async (t) => {
  const desk = await Desk.open(t);
  const app = await App.open(desk, { agent: "Demo agent" });
  await app.send("stubborn");
  await app.log.getByText("I have a child in a session of its own").waitFor();
  assert.equal(desk.processes().filter(({ command }) => command.includes("demo-agent")).length, 2);
  await desk.kill();
  await desk.gone();
});

test("an agent that does not stop is interrupted", async (t) => {
  const desk = await Desk.open(t);
  const app = await App.open(desk, { agent: "Demo agent" });
  await app.send("hang");
  await app.log.getByText("I hang now. Cancel does not help.").waitFor();
  await app.button("Stop").click();
  await app.page.getByText("Stopping…").waitFor();
  await app.log.getByText("Demo agent did not stop when asked: interrupt sent").waitFor();
  await app.footers.first().waitFor();
  await app.turn("help");
});

test("broken and unknown messages are shown raw, and the session goes on", async (t) => {
  const desk = await Desk.open(t);
  const app = await App.open(desk, { agent: "Demo agent" });
  await app.turn("junk");
  await app.log.getByText("After the junk I go on as if nothing had happened.").waitFor();
  const raw = app.log.locator("[data-row=raw]");
  const kinds = await raw.allInnerTexts();
  t.diagnostic(kinds.map((kind) => kind.replaceAll("\n", " ")).join("; "));
  for (const expected of [/Output that is not part of the protocol/, /Unrecognised update/, /Update with unreadable parts/]) {
    assert.ok(kinds.some((kind) => expected.test(kind)), `${expected} in ${kinds}`);
  }
  await raw.filter({ hasText: "Unrecognised update" }).first().getByRole("button").first().click();
  await raw.getByText("demo_unknown_kind").waitFor();
  await app.log.getByText("A tool call that was never opened").waitFor();

  await app.send("unknown request");
  await app.page.getByRole("region", { name: /Unrecognised request/ }).getByText("No client knows this request.").waitFor();
  await app.button("Dismiss", app.request).click();
  await app.log.getByText(/The client answered with error -32601/).waitFor();
  await app.footers.nth(1).getByText("Done", { exact: true }).waitFor();
  await app.turn("vendor request"); // is refused without a person
  assert.equal(await app.log.getByText(/The client answered with error -32601/).count(), 2);
});

test("ends of a turn are told", async (t) => {
  const desk = await Desk.open(t);
  const app = await App.open(desk, { agent: "Demo agent" });
  await app.turn("limit", "Ended at the token limit");
  await app.turn("refuse", "Demo agent refused");
  await app.turn("error", "Failed");
  await app.log.getByTestId("failure").getByText("the prompt asked for an error").waitFor();
  await app.turn("silent");
});

test("a message of 20 MiB is kept whole and the page stays alive", async (t) => {
  const desk = await Desk.open(t);
  const app = await App.open(desk, { agent: "Demo agent" });
  await app.turn("huge");
  await app.log.getByText("0000001 ...").first().waitFor();
  const { id } = await desk.session();
  const entry = (await desk.entries(id)).find((one) => one.clipped);
  const whole = await desk.api("GET", `/client/sessions/${id}/entries/${entry.id}/text`);
  const lines = whole.split("\n");
  assert.equal(Buffer.byteLength(whole), 20 << 20);
  assert.ok(lines.slice(0, -1).every((line, n) => line.startsWith(String(n).padStart(7, "0"))), "a hole");
  await app.log.getByRole("button", { name: /^Show all \([\d.]+ MB more\)$/ }).waitFor();
  await app.turn("help");
});

test("10,000 updates in a burst arrive without loss", async (t) => {
  const desk = await Desk.open(t);
  const app = await App.open(desk, { agent: "Demo agent" });
  await app.turn("burst");
  const { id } = await desk.session();
  const entry = (await desk.entries(id)).find(({ kind, text }) => kind === "agent" && text.startsWith("1\n"));
  const text = entry.clipped ? await desk.api("GET", `/client/sessions/${id}/entries/${entry.id}/text`) : entry.text;
  assert.equal(text, Array.from({ length: 10_000 }, (_, n) => `${n + 1}\n`).join(""));
  await app.log.getByText("That were 10000 updates.").waitFor();
  const shown = await app.log.getByRole("article", { name: "Answer" }).first().innerText();
  assert.match(shown, entry.clipped ? /^1\s+2\s+3\s/ : /9999\s+10000\s*$/);
});

test("hostile Markdown does nothing", async (t) => {
  const desk = await Desk.open(t);
  const app = await App.open(desk, { agent: "Demo agent" });
  await app.turn("markdown");
  await app.log.getByText("The end of the sample.").waitFor();
  assert.equal(await app.page.evaluate(() => window.deskhandHacked), undefined);
  assert.equal(await app.log.locator("script, style, iframe, form, object, embed, svg svg, details[ontoggle], img[onerror]").count(), 0);
  const pictures = await app.log.locator("img").evaluateAll((list) => list.map((image) => image.src));
  assert.deepEqual(pictures.filter((source) => !/^data:image\/(png|jpeg|gif|webp)/.test(source)), []);
  const links = await app.log.locator("a").evaluateAll((list) => list.map((link) => [link.textContent, link.href]));
  for (const [name, href] of links) assert.match(href, /^(https?:|mailto:)/, name);
  const handlers = await app.log.evaluate((root) =>
    [...root.querySelectorAll("*")].flatMap((element) => element.getAttributeNames().filter((name) => name.startsWith("on"))));
  assert.deepEqual(handlers, []);
  for (const name of ["script link", "data link", "file link", "HTML link"]) {
    assert.equal(await app.log.getByRole("link", { name }).count(), 0, name);
  }
  // A good link opens beside the app, and cannot reach back to the app.
  await app.page.context().route("https://example.com/**", (route) => route.fulfill({ contentType: "text/html", body: "<title>outside</title>" }));
  const outside = app.page.context().waitForEvent("page");
  await app.log.getByRole("link", { name: "link", exact: true }).click();
  const opened = await outside;
  await opened.waitForURL("https://example.com/docs?a=1&b=2");
  assert.equal(await opened.evaluate(() => window.opener), null);
});

test("a directory that has vanished is told, and comes back", async (t) => {
  const desk = await Desk.open(t);
  const app = await App.open(desk, { agent: "Demo agent" });
  await app.turn("help");
  await desk.restart(); // the agent is gone, the conversation sleeps
  await app.status.getByText("Connected").waitFor();
  const elsewhere = path.join(desk.dir, "elsewhere");
  fs.renameSync(desk.work, elsewhere);
  await app.send("help");
  await app.page.getByText(`The directory ${desk.work} is missing`).or(app.exit.getByText("the directory is missing")).first().waitFor();
  await until("the message, to be sent again", async () => (await app.composer.inputValue()) === "help");
  await app.holds(2_000);
  assert.equal(await app.composer.inputValue(), "help");
  assert.equal((await desk.session()).draft, "help");

  await app.button("New conversation", app.sidebar).click();
  const before = (await desk.api("GET", "/client/sessions")).items.length;
  await app.send("not to be lost");
  await app.page.getByText(`The directory ${desk.work} does not exist.`).waitFor();
  assert.equal(await app.composer.inputValue(), "not to be lost");
  assert.equal((await desk.api("GET", "/client/sessions")).items.length, before, "an empty conversation is left");
  await app.composer.fill("");

  fs.renameSync(elsewhere, desk.work);
  await app.page.getByRole("treeitem", { name: /^help,/ }).click();
  await app.page.reload();
  await app.page.getByRole("treeitem", { name: /^help,/ }).click();
  await app.turn("help");
});

test("an agent whose program is gone, or cannot start, says why", async (t) => {
  const desk = Desk.make(t);
  const quits = desk.script("quits", "#!/bin/sh\necho 'no licence on this machine' >&2\nexit 7\n");
  const gone = desk.script("gone", "#!/bin/sh\n");
  const mute = desk.script("mute", "#!/bin/sh\nread line\necho 'I am no agent'\nexit 0\n");
  const refused = desk.script("refused", "not a program\n");
  desk.agents([
    { id: "quits", name: "Quitter", command: quits }, { id: "gone", name: "Goner", command: gone },
    { id: "mute", name: "Mute", command: mute }, { id: "refused", name: "Refused", command: refused },
    { id: "never", name: "Never", command: "/nowhere/agent" }, { id: "empty", name: "Empty", command: "" },
  ]);
  await desk.start();
  const app = await App.open(desk);
  await app.chip("Agent").click();
  const offered = (await app.page.getByRole("listbox", { name: "Agent" }).getByRole("option").allInnerTexts()).map((text) => text.split("\n")[0]);
  assert.ok(offered.includes("Quitter") && !offered.includes("Never") && !offered.includes("Empty"), offered.join());
  await app.page.keyboard.press("Escape");

  await app.begin("Quitter", desk.work);
  await app.exit.getByText(/^Quitter could not start: .* exit code 7/).waitFor();
  await app.exit.getByText("no licence on this machine").waitFor();

  fs.rmSync(gone);
  await app.button("New conversation", app.sidebar).click();
  await app.begin("Goner", desk.work);
  await app.exit.getByText("its program was not found").waitFor();

  await app.button("New conversation", app.sidebar).click();
  await app.begin("Mute", desk.work);
  await app.exit.getByText(/^Mute could not start: it did not answer as an agent should/).waitFor();

  await app.button("New conversation", app.sidebar).click();
  await app.begin("Refused", desk.work);
  await app.exit.getByText("the system refused to run its program").waitFor();

  // Repaired, the same conversation starts.
  fs.writeFileSync(quits, `#!/bin/sh\nexec ${program()} demo-agent\n`);
  await app.page.getByRole("treeitem", { name: /Quitter/ }).click();
  await app.exit.getByText("no licence on this machine").waitFor();
  await app.button("Restart", app.exit).click();
  await until("the agent", async () => (await desk.api("GET", "/client/sessions")).items.some(({ agent, phase }) => agent === "quits" && phase === "ready"));
});
