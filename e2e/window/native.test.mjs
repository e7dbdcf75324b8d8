// Requests beside the window: dialogs of the system, answered by the keyboard and the pointer as a person does, and notifications, by a
// server of our own on the session's bus. The demo agent asks, and asker.mjs where the request has to be of a certain kind.
import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import fs from "node:fs";
import os from "node:os";
import path from "node:path";
import { onDesktop, pause, until } from "./desktop.mjs";

const here = import.meta.dirname;
/** Longer than what answers in a new dialog does nothing. */
const guard = 400;
const readable = 1_500;
/** How long nothing has to happen until that counts. */
const quiet = 1500;

/** A test in the window, which nobody looks at: it is put away. */
function unseen(name, body) {
  onDesktop(name, async (d, t) => {
    d.desk.agents([{ id: "asker", name: "Asker", command: process.execPath, args: [path.join(here, "asker.mjs")] }]);
    await d.start();
    await putAway(d);
    await body(d, t);
  });
}

async function putAway(d) {
  const window = await d.window();
  await d.xdotool("windowminimize", window);
  await until("the window is put away", async () => !(await d.place(window)).shown);
}

const options = [
  { optionId: "once", name: "Allow once", kind: "allow_once" },
  { optionId: "ever", name: "Allow for this session", kind: "allow_always" },
  { optionId: "no", name: "Reject", kind: "reject_once" },
];

/** Has an agent ask something; gives the session. */
async function ask(d, method, { title = "Fix the login", ...params }) {
  const { id } = await d.desk.api("POST", "/client/sessions", { agent: "asker", cwd: d.desk.work, title });
  await until("the agent", async () => (await d.desk.api("GET", `/client/sessions/${id}`)).phase === "ready");
  const file = path.join(d.desk.dir, `asked-${id}`);
  fs.writeFileSync(file, JSON.stringify({ method, params }));
  await d.desk.api("POST", `/client/sessions/${id}/prompt`, { message: file });
  return id;
}

const command = (d, line, more = {}) =>
  ask(d, "session/request_permission", { toolCall: { toolCallId: "1", title: "Run", kind: "execute", rawInput: { command: line } }, options, ...more });
const question = (d, more) => ask(d, "_sandboxagent/session/request_question", { questionId: "q", prompt: "Which one?", ...more });

/** What the agent was answered. */
async function answered(d, session) {
  await until("the end of the turn", async () => !(await d.desk.api("GET", `/client/sessions/${session}`)).turn);
  const [request] = (await d.desk.api("GET", `/client/sessions/${session}/entries`)).requests;
  return { by: request.answeredBy, got: JSON.parse((await d.desk.entries(session)).findLast((entry) => entry.kind === "agent").text) };
}

const chose = (optionId) => ({ by: "native", got: { outcome: { outcome: "selected", optionId } } });

/** Waits for the dialog, until it can be answered. */
async function dialog(d, title) {
  const window = await d.dialog(title);
  await pause(readable);
  return window;
}

const gone = (d, window) => until("the end of the dialog", async () => !(await d.windows(".")).includes(window));

/** What waits, which must not change for a while. */
async function stays(d, count) {
  await pause(quiet);
  assert.equal((await d.desk.api("GET", "/client/inbox")).items.length, count);
}

unseen("an approval has the agent's options as buttons, and is answered by one", async (d) => {
  // Tab: Open, Later, then the options in the agent's order.
  for (const [tabs, optionId] of [[3, "once"], [4, "ever"], [5, "no"]]) {
    const session = await command(d, "make test");
    const window = await dialog(d, "^Asker wants to run a command$");
    await d.picture("native-approval");
    await d.key(...Array(tabs).fill("Tab"), "Return");
    await gone(d, window);
    assert.deepEqual(await answered(d, session), chose(optionId));
  }
});

unseen("Return, Space, a digit and Escape answer no approval, nor does closing it", async (d) => {
  for (const close of ["Escape", "alt+F4"]) {
    const session = await command(d, "make test");
    const window = await dialog(d, "^Asker wants to run a command$");
    await d.key("Return", "space", "1", "y", "KP_Enter", "ctrl+Return");
    assert.ok((await d.windows("^Asker")).includes(window), "a key has closed it");
    await d.key(close);
    await gone(d, window);
    await stays(d, 1);
    assert.deepEqual(await d.windows("^Asker"), [], "it came back");
    const [{ id }] = (await d.desk.api("GET", "/client/inbox")).items;
    await d.desk.api("POST", `/client/requests/${id}/answer`, { optionId: "no" });
    assert.equal((await answered(d, session)).by, "api");
  }
});

unseen("nothing answers in the first moment", async (d) => {
  // Keys that were meant for another window: all that is needed to press a button, and Escape. On a busy machine they may come too late
  // to be too early; then it is tried again.
  for (let tries = 1; ; tries++) {
    await command(d, "make test");
    let from = performance.now();
    const window = await until("the dialog", async () => {
      const at = performance.now();
      const found = (await d.windows("^Asker")).at(-1);
      if (!found) from = at; // it came after this look began
      return found;
    });
    await d.xdotool("key", "--delay", "5", "Escape", "Tab", "Tab", "Tab", "Return", "space", "Escape");
    const early = performance.now() - from < guard;
    await pause(readable);
    const { items } = await d.desk.api("GET", "/client/inbox");
    if (early) {
      assert.equal(items.length, 1, "it was answered");
      assert.ok((await d.windows("^Asker")).includes(window), "it was closed");
      return;
    }
    assert.ok(tries < 10, "no key came in time");
    for (const { id } of items) await d.desk.api("POST", `/client/requests/${id}/answer`, { optionId: "no" });
    await until("the end of the dialog", async () => (await d.windows("^Asker")).length === 0);
  }
});

unseen("a question is answered by a choice, by several, and in one's own words", async (d) => {
  const choices = [["pg", "PostgreSQL"], ["lite", "SQLite %s <b>"], ["none", "None"]];
  let session = await question(d, { options: choices });
  let window = await dialog(d, "^Asker asks$");
  await d.picture("native-question");
  await d.key("Return", "2"); // nothing is chosen, so nothing is sent
  assert.ok((await d.windows("^Asker")).includes(window));
  await d.key("Tab", "Tab", "Tab", "Tab", "Return"); // Open, Later, Decline, Send
  assert.deepEqual(await answered(d, session), { by: "native", got: { status: "answered", answers: [["lite"]] } });

  session = await question(d, { options: choices, multiSelect: true });
  await dialog(d, "^Asker asks$");
  await d.key("1", "2", "3", "2");
  await d.picture("native-several");
  await d.key("Tab", "Tab", "Tab", "Tab", "Tab", "Return");
  assert.deepEqual((await answered(d, session)).got, { status: "answered", answers: [["pg", "none"]] });

  session = await question(d, { options: choices, allowFreeText: true });
  await dialog(d, "^Asker asks$");
  await d.key("1", "Tab"); // from the choice to the field, which takes its place
  await d.xdotool("type", "--delay", "20", "1 <b>%s</b>");
  await d.picture("native-words");
  await d.key("Return");
  assert.deepEqual((await answered(d, session)).got, { status: "answered", answers: [["1 <b>%s</b>"]] });

  session = await question(d, { options: [] });
  window = await dialog(d, "^Asker asks$");
  await d.key("Escape");
  await gone(d, window);
  await stays(d, 1);
  const [{ id }] = (await d.desk.api("GET", "/client/inbox")).items;
  await d.desk.api("POST", `/client/requests/${id}/answer`, { reject: true });
  await answered(d, session);

  session = await question(d, { options: choices });
  await dialog(d, "^Asker asks$");
  await d.key(...Array(6).fill("Tab"), "Return"); // the choices, Open, Later, Decline
  assert.deepEqual((await answered(d, session)).got, { status: "rejected" });
});

unseen("a form of one field is a question, and one of more is shown in the window", async (d) => {
  const schema = (properties) => ({ type: "object", properties, required: Object.keys(properties) });
  let session = await ask(d, "elicitation/create", { mode: "form", message: "Which licence?", requestedSchema: schema({ licence: { type: "string", enum: ["MIT", "none"] } }) });
  await dialog(d, "^Asker asks$");
  await d.picture("native-form");
  await d.key("2", "Tab", "Tab", "Tab", "Tab", "Tab", "Return"); // Open, Later, Decline, Cancel, Send
  assert.deepEqual((await answered(d, session)).got, { action: "accept", content: { licence: "none" } });

  session = await ask(d, "elicitation/create", { mode: "form", message: "How?", requestedSchema: schema({ a: { type: "string" }, b: { type: "number" } }) });
  await dialog(d, "^Asker asks$");
  await d.picture("native-elsewhere");
  await d.key("Tab", "Return"); // Open in Deskhand
  await d.focus();
  await stays(d, 1);
});

unseen("one dialog at a time, and one that is answered elsewhere goes at once", async (d) => {
  const first = await command(d, "one");
  const window = await dialog(d, "^Asker wants to run a command$");
  const second = await question(d, { options: [["a", "A"]] });
  await stays(d, 2);
  assert.deepEqual(await d.windows("^Asker"), [window], "there are two");
  const { items } = await d.desk.api("GET", "/client/inbox");
  const before = performance.now();
  await d.desk.api("POST", `/client/requests/${items.find((one) => one.session === first).id}/answer`, { optionId: "no" });
  await gone(d, window);
  assert.ok(performance.now() - before < 10_000, "it stayed");
  assert.equal((await answered(d, first)).by, "api");
  await dialog(d, "^Asker asks$");
  await d.desk.api("POST", `/client/sessions/${second}/cancel`);
  await until("the end of the second", async () => (await d.windows("^Asker")).length === 0);
});

unseen("what is hostile is shown as it is, and does no harm", async (d) => {
  const hidden = "\u202e\u200b\u0007\u001b[31m";
  const texts = {
    format: "%s%n%s%n%99999999s",
    markup: "<b>bold</b> <span foreground='white'>&amp; &bogus; _mnemonic",
    hidden: `echo ${hidden} done`,
    lines: "echo a" + "\n".repeat(300) + "make clean",
    long: "x%s<".repeat(1 << 18), // 1 MiB
  };
  for (const [name, text] of Object.entries(texts)) {
    const session = await command(d, text, { options: [{ optionId: "a", name: `Allow ${name === "lines" ? "a\nb" : text.slice(0, 40)}`, kind: "allow_once" }, options[2]] });
    const before = performance.now();
    const window = await dialog(d, "^Asker wants to run a command$");
    assert.ok(performance.now() - before < 10_000, "it took too long to be shown");
    await d.picture(`native-hostile-${name}`);
    await d.key("End", "ctrl+End");
    await d.picture(`native-hostile-${name}-end`);
    await d.key("Escape");
    await gone(d, window);
    const [{ id }] = (await d.desk.api("GET", "/client/inbox")).items;
    await d.desk.api("POST", `/client/requests/${id}/answer`, { optionId: "no" });
    await answered(d, session);
  }
  assert.equal(d.app.exitCode, null);
});

onDesktop("the setting decides: never, while nobody looks, always", async (d) => {
  d.desk.agents([{ id: "asker", name: "Asker", command: process.execPath, args: [path.join(here, "asker.mjs")] }]);
  await d.start();
  const set = (nativeDialogs) => d.desk.api("PATCH", "/client/settings", { nativeDialogs });
  const none = async () => {
    await pause(quiet);
    assert.deepEqual(await d.windows("^Asker"), []);
  };

  // In the focused window the band is enough.
  const app = await d.window();
  await command(d, "one");
  await none();
  await set("always");
  const window = await dialog(d, "^Asker wants to run a command$");
  // It is beside the window and not before it: that can be used meanwhile.
  await d.xdotool("windowactivate", "--sync", app);
  assert.ok((await d.windows("^Asker")).includes(window));
  await set("never");
  await gone(d, window);
  await putAway(d);
  await none();
  await command(d, "two");
  await none();
  await set("unfocused");
  const late = await dialog(d, "^Asker wants to run a command$");
  // Who comes to the window answers there.
  await d.xdotool("windowmap", app);
  await d.xdotool("windowactivate", "--sync", app);
  await gone(d, late);
  assert.equal((await d.desk.api("GET", "/client/inbox")).items.length, 2);
});

onDesktop("what a directory brings is approved in a dialog", async (d) => {
  await d.start();
  const config = path.join(d.desk.work, ".sandbox-agent", "config");
  fs.mkdirSync(config, { recursive: true });
  fs.writeFileSync(path.join(config, "mcp.json"), JSON.stringify({ db: { type: "local", command: "/bin/echo", args: ["%s", "<b>"] } }));
  await putAway(d);
  const { id } = await d.desk.api("POST", "/client/sessions", { agent: "mock", cwd: d.desk.work });
  await dialog(d, "would start with what is in this directory$");
  await d.picture("native-trust");
  await d.key("Tab", "Tab", "Tab", "Tab", "Tab", "Return"); // Open, Later, Approve, Once, Without
  await until("the agent", async () => (await d.desk.api("GET", `/client/sessions/${id}`)).phase === "ready");
});

onDesktop("Open in Deskhand shows the request, with the focus on it", async (d) => {
  await d.drive();
  await d.shows("Start your first conversation");
  await putAway(d);
  const { id } = await d.desk.api("POST", "/client/sessions", { agent: "mock", cwd: d.desk.work });
  await until("the agent", async () => (await d.desk.api("GET", `/client/sessions/${id}`)).phase === "ready");
  await d.desk.api("POST", `/client/sessions/${id}/prompt`, { message: "permission" });
  const window = await dialog(d, "^Demo agent wants to edit$");
  await d.key("Tab", "Return");
  await gone(d, window);
  await d.focus();
  await until("the request", () => d.js("return document.activeElement?.closest('[data-request]') !== null && document.body.innerText.includes('Allow once')"));
  assert.equal((await d.desk.api("GET", "/client/inbox")).items.length, 1);
});

/** A notification server on the desktop's bus: {calls, do, kill}. */
let server;
async function notified(d, ...can) {
  if (!server) {
    server = path.join(fs.mkdtempSync(path.join(os.tmpdir(), "deskhand-notified-")), "notified");
    execFileSync("go", ["build", "-tags", "e2e", "-o", server, "./e2e/window/notified"], { cwd: path.join(here, "../.."), stdio: "inherit" });
    process.on("exit", () => fs.rmSync(path.dirname(server), { recursive: true, force: true }));
  }
  const child = d.launch({ file: server, args: can, stdio: ["pipe", "pipe", "pipe"] });
  const calls = [];
  let rest = "";
  child.stdout.on("data", (data) => {
    const lines = (rest + data).split("\n");
    rest = lines.pop();
    calls.push(...lines.map((line) => JSON.parse(line)));
  });
  await until("the notification server", () => calls.shift()?.call === "ready");
  const next = (call) => until(`the call ${call}`, () => calls.find((one) => one.call === call && !one.seen && (one.seen = true)));
  return { calls, next, child, do: (what) => child.stdin.write(JSON.stringify(what) + "\n") };
}

const silent = (d) => d.desk.api("PATCH", "/client/settings", { nativeDialogs: "never" });

unseen("a notification answers, opens, and goes when it is answered elsewhere", async (d, t) => {
  await silent(d);
  const n = await notified(d, "actions");
  let session = await command(d, "make <b>test</b> && echo %s");
  let shown = await n.next("notify");
  assert.equal(shown.summary, "Asker wants to run a command");
  assert.equal(shown.body, "make &lt;b&gt;test&lt;/b&gt; &amp;&amp; echo %s\nFix the login");
  const keys = Object.fromEntries(shown.actions.flatMap((key, i) => (i % 2 ? [] : [[shown.actions[i + 1], key]])));
  assert.deepEqual(Object.keys(keys), ["Open", "Allow once", "Reject"]);
  // Who does not show notifications has no say in them.
  const stranger = await notified(d, "forge");
  stranger.do({ act: shown.id, key: keys["Allow once"] });
  await stays(d, 1);
  n.do({ act: shown.id, key: keys["Allow once"] });
  assert.deepEqual(await answered(d, session), chose("once"));

  session = await command(d, "make test");
  shown = await n.next("notify");
  n.do({ act: shown.id, key: keys.Reject });
  assert.deepEqual(await answered(d, session), chose("no"));

  // What is dangerous, or longer than the notification, cannot be allowed from there.
  for (const line of ["sudo make install", "make test; ".repeat(60)]) {
    session = await command(d, line);
    shown = await n.next("notify");
    assert.deepEqual(shown.actions.filter((_, i) => i % 2), ["Open", "Reject", "Open"]);
    n.do({ act: shown.id, key: shown.actions[2] });
    assert.deepEqual(await answered(d, session), chose("no"));
  }

  session = await command(d, "make test");
  shown = await n.next("notify");
  const [{ id }] = (await d.desk.api("GET", "/client/inbox")).items;
  await d.desk.api("POST", `/client/requests/${id}/answer`, { optionId: "no" });
  assert.equal((await n.next("close")).id, shown.id);

  // Put away, it answers nothing, and does not come back.
  await question(d, { options: [["a", "A"]] });
  shown = await n.next("notify");
  assert.equal(shown.body, "Which one?\nFix the login");
  assert.deepEqual(shown.actions, ["default", "Open", "open", "Open"]);
  n.do({ close: shown.id });
  await stays(d, 1);

  // The window is opened by the next one, and takes the others away.
  await command(d, "three");
  shown = await n.next("notify");
  n.do({ act: shown.id, key: "default" });
  await d.focus();
  await putAway(d);
  await command(d, "four");
  shown = await n.next("notify");
  await pause(quiet);
  assert.deepEqual(n.calls.filter((one) => !one.seen), [], "what was seen a moment ago is told again");
  d.app.kill("SIGTERM");
  assert.equal((await n.next("close")).id, shown.id); // at the end nothing is left on the screen
  assert.deepEqual(await d.app.ended, { code: 0, signal: null }, d.app.said);
  t.diagnostic(`${n.calls.length} calls`);
});

unseen("two conversations that ask are two notifications, each for its own", async (d) => {
  await silent(d);
  const n = await notified(d, "actions");
  const titles = ["The lamp", "The horn"];
  const sessions = await Promise.all(titles.map((title) => command(d, "make test", { title })));
  const shown = [await n.next("notify"), await n.next("notify")];
  assert.deepEqual(shown.map((one) => one.body).sort(), ["make test\nThe horn", "make test\nThe lamp"]);
  assert.equal((await d.desk.api("GET", "/client/inbox")).items.length, 2);
  const of = (title) => shown.find((one) => one.body.endsWith(title));
  assert.ok(!n.calls.some((one) => one.call === "close"), "one has taken the other away");
  n.do({ act: of("The horn").id, key: of("The horn").actions[of("The horn").actions.indexOf("Reject") - 1] });
  assert.deepEqual(await answered(d, sessions[1]), chose("no"));
  assert.deepEqual((await d.desk.api("GET", "/client/inbox")).items.map((one) => one.session), [sessions[0]]);
  n.do({ act: of("The lamp").id, key: of("The lamp").actions[of("The lamp").actions.indexOf("Allow once") - 1] });
  assert.deepEqual(await answered(d, sessions[0]), chose("once"));
});

unseen("many requests are one notification with their number", async (d) => {
  await silent(d);
  const n = await notified(d, "actions");
  for (let i = 0; i < 4; i++) await command(d, `echo ${i}`);
  const last = await until("the one of all", () => n.calls.find((one) => one.summary === "4 requests wait"));
  assert.deepEqual(last.actions, ["default", "Open", "open", "Open"]);
  await until("the end of the others", () => n.calls.filter((one) => one.call === "close").length === n.calls.filter((one) => one.call === "notify").length - 1);
  await d.desk.api("PATCH", "/client/settings", { notifications: false });
  await until("the end of all", () => n.calls.some((one) => one.call === "close" && one.id === last.id));
});

unseen("a desktop that knows no actions gets the text alone, and one without notifications none", async (d) => {
  await silent(d);
  const none = await command(d, "nobody shows this");
  await pause(quiet);
  assert.equal(d.app.exitCode, null);
  const n = await notified(d);
  await command(d, "make test");
  const shown = await n.next("notify");
  assert.equal(shown.actions, undefined);
  assert.ok(none);
  n.child.kill("SIGTERM");
  await n.child.ended;
  const session = await command(d, "nobody shows this either");
  await stays(d, 3);
  await d.desk.api("POST", `/client/sessions/${session}/cancel`);
  await d.desk.api("PATCH", "/client/settings", { nativeDialogs: "unfocused" });
  await dialog(d, "^Asker wants to run a command$"); // dialogs do not need the bus
});
