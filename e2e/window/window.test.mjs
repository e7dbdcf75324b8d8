// What only the real window has: the asset server's mount, native dialogs, the desktop's window, starting and ending. Everything
// else of the app is tested in Chromium (e2e/browser), where it is quicker.
import assert from "node:assert/strict";
import fs from "node:fs";
import path from "node:path";
import { held } from "../pss.mjs";
import { onDesktop, pause, program, until } from "./desktop.mjs";

/** A session of the demo agent that is ready for a prompt, made without the window. */
async function session(d) {
  const { id } = await d.desk.api("POST", "/client/sessions", { agent: "mock", cwd: d.desk.work });
  await until("the agent", async () => (await d.desk.api("GET", `/client/sessions/${id}`)).phase === "ready");
  return id;
}

onDesktop("a first conversation, by a native dialog and the page's own controls", async (d) => {
  await d.drive();
  assert.equal(await d.url(), "wails://wails/");
  await d.shows("Start your first conversation");
  await d.shows("Demo agent");
  await d.picture("first-run");

  const chosen = path.join(d.desk.work, "a project ü 100% %s");
  fs.mkdirSync(chosen);
  await d.click("//button[starts-with(@aria-label, 'Directory: ')]");
  await d.click("//*[@role = 'option'][contains(., 'Choose a directory')]");
  await d.choose("^Choose a directory$", chosen);
  await until("the directory in the page", () => d.js("return [...document.querySelectorAll('button')].some((one) => one.title === arguments[0])", chosen));

  await d.type("//textarea", "Please improve the file.");
  await d.click("//button[normalize-space() = 'Send' or @aria-label = 'Send']");
  await d.click("//footer[not(@aria-disabled)]//button[contains(., 'Allow once')]"); // a press that comes at once with the card counts for nothing
  const { id } = await until("the end of the turn", async () => {
    const { items } = await d.desk.api("GET", "/client/sessions?limit=1");
    return items[0]?.phase === "ready" && items[0];
  });
  const { turns } = await d.desk.api("GET", `/client/sessions/${id}/entries`);
  assert.equal(turns[0].stopReason, "end_turn");
  assert.ok(fs.existsSync(path.join(chosen, "deskhand-demo.md")), "the agent's file is not in the chosen directory");
  const answer = (await d.desk.entries(id)).findLast((entry) => entry.kind === "agent");
  await d.shows(answer.text.split("\n").at(-1).replaceAll(/[`*]/g, ""));
  await d.find("//button[normalize-space() = 'Send' or @aria-label = 'Send']");
  await d.picture("conversation");
});

onDesktop("a conversation is saved where the person says, by the native dialog", async (d) => {
  await d.drive();
  const id = await session(d);
  await d.desk.api("PATCH", `/client/sessions/${id}`, { title: "Über 100% %s" });
  await d.desk.api("POST", `/client/sessions/${id}/prompt`, { message: "echo\nthe lighthouse" });
  await until("the end of the turn", async () => !(await d.desk.api("GET", `/client/sessions/${id}`)).turn);
  await d.click("//*[@role = 'treeitem'][contains(., 'Über')]");
  const save = async (format) => {
    await d.click("//button[@aria-label = 'Conversation actions']");
    await d.click("//*[@role = 'menuitem'][contains(., 'Export')]");
    await d.click(`//*[@role = 'menuitem'][normalize-space() = '${format}']`);
  };

  // Nothing is saved where the person wants none.
  await save("JSON");
  await d.dialog("^Save the conversation as JSON$");
  await d.picture("save-dialog");
  await d.key("Escape");
  await until("the end of the dialog", async () => (await d.windows("^Save the conversation")).length === 0);

  const file = path.join(d.desk.work, "kept 100% %s.md");
  await save("Markdown");
  await d.choose("^Save the conversation as Markdown$", file);
  await d.shows("Saved as");
  assert.match(fs.readFileSync(file, "utf8"), /^# Über 100% %s\n[\s\S]*the lighthouse/);
  assert.deepEqual(fs.readdirSync(d.desk.work), [path.basename(file)], "nothing else is left");

  // What cannot be written is told, with the path.
  await save("Recording");
  await d.choose("^Save a recording of the conversation$", "/proc/deskhand.zip");
  await d.shows("could not be written");
  await d.picture("save-failed");
});

onDesktop("the page stays in the window, whatever is dropped or clicked", async (d) => {
  const browser = d.desk.script("xdg-open", `#!/bin/sh\nprintf '%s\\n' "$1" >>"${d.desk.dir}/opened"\n`);
  d.env.PATH = `${path.dirname(browser)}:${d.env.PATH}`;
  await d.drive();
  await d.shows("Start your first conversation");
  const file = path.join(d.desk.work, "page.html");
  fs.writeFileSync(file, "<h1>The window has left the app</h1>");
  const { x, y, width, height } = await d.place(await d.window());
  for (const part of [0.1, 0.6]) await d.drop(file, { x: x + Math.round(width * part), y: y + Math.round(height / 2) });
  // The drop has been dealt with when the page answers; then what a link of an agent could do.
  await d.js(`
    const link = document.body.appendChild(document.createElement("a"));
    for (const address of arguments[0]) for (const target of ["_self", "_blank"]) { link.href = address; link.target = target; link.click(); }
    location.href = arguments[0][0];
  `, ["file://" + file, "https://example.org/there"]);
  const opened = path.join(d.desk.dir, "opened"); // is there a moment before what is written to it
  await until("the link outside", () => fs.existsSync(opened) && fs.readFileSync(opened, "utf8").endsWith("there\n"));
  assert.equal(await d.url(), "wails://wails/");
  await d.shows("Start your first conversation");
  assert.match(fs.readFileSync(opened, "utf8"), /^(https:\/\/example\.org\/there\n)+$/);
});

onDesktop("responses end while agents start", async (d) => {
  await d.drive();
  // Without the seal of app/mount.go an agent inherits the pipe of a response, which then ends with the agent.
  await d.js(`
    const body = JSON.stringify({ agent: "mock", cwd: arguments[0] });
    const start = () => fetch("/client/sessions", { method: "POST", headers: { "Content-Type": "application/json" }, body });
    const look = () => fetch("/client/sessions");
    window.open = 0;
    for (let n = 0; n < 200; n++) {
      window.open++;
      (n % 10 === 0 ? start() : look()).then((answer) => answer.text()).then(() => window.open--);
    }
  `, d.desk.work);
  await until("the end of every response", async () => {
    const open = await d.js("return window.open");
    if (open > 0) throw new Error(`${open} are open`);
    return true;
  });
});

onDesktop("a page that is reloaded while answers come ends them, and nothing else", async (d) => {
  await d.drive();
  // An answer of more than a pipe holds is still being written when the page goes. Who writes it panics then (app/mount.go).
  const id = await session(d);
  await d.desk.api("PATCH", `/client/sessions/${id}`, { draft: "An answer that fills a pipe. ".repeat(8_000) });
  for (let n = 0; n < 10; n++) {
    await d.js(`
      for (let n = 0; n < 60; n++) void fetch("/client/sessions").then(() => undefined, () => undefined);
      setTimeout(() => location.reload(), arguments[0]);
      window.before = true;
    `, n * 20);
    await until("the page anew", () => d.js("return !window.before && document.readyState === 'complete' && document.querySelector('#app')?.childElementCount > 0"));
  }
  assert.equal((await d.desk.api("GET", `/client/sessions/${id}`)).phase, "ready");
  assert.doesNotMatch(d.log, /panic/);
});

onDesktop("a page whose process dies comes back, with what was shown and typed, and the agent works on", async (d) => {
  await d.start();
  const id = await session(d);
  const page = () => d.desk.processes().find(({ command }) => command.includes("WebKitWebProcess"))?.pid;
  const drafts = async () => (await d.desk.api("GET", `/client/sessions/${id}`)).draft;
  await d.desk.api("POST", `/client/sessions/${id}/prompt`, { message: "stream 20/s 300s" });
  await until("the composer", async () => {
    await d.key("ctrl+1");
    await d.key("k");
    return drafts();
  });
  for (let n = 0; n < 2; n++) { // a third in a row would leave the conversation to the person
    const typed = await until("a draft that rests", async () => { // keys go out half a second later
      const one = await drafts();
      await pause(1_000);
      return one === (await drafts()) && one;
    });
    const before = page();
    process.kill(before, "SIGKILL");
    await until("another page", () => page() && page() !== before);
    // It shows the same conversation, and takes what is typed there.
    await until("what is typed in it", async () => {
      await d.key("y");
      const now = (await drafts()) ?? ""; // keys that a slow page had not saved yet may stand between
      return now.startsWith(typed) && now.slice(typed.length).includes("y");
    });
  }
  const { phase, turn } = await d.desk.api("GET", `/client/sessions/${id}`);
  assert.equal(phase, "working");
  assert.equal(turn.state, "running");
});

onDesktop("a second start brings the first window forward and ends", async (d) => {
  await d.start();
  const window = await d.window();
  // deskhand without a command is the window program beside it.
  for (const file of [program, path.join(path.dirname(program), "deskhand")]) {
    await d.xdotool("windowminimize", window);
    await until("the window is put away", async () => !(await d.place(window)).shown);
    const second = d.launch({ file });
    assert.deepEqual(await second.ended, { code: 0, signal: null }, second.said);
    await until("the window is back", async () => (await d.place(window)).shown);
    await until("the focus", async () => (await d.active()) === window);
    assert.equal((await d.windows("^Deskhand$")).length, 1);
    assert.equal(d.app.exitCode, null);
  }
});

onDesktop("SIGTERM ends the app and its agents, with a turn running and a dialog open", async (d, t) => {
  const app = await d.start();
  const id = await session(d);
  await d.desk.api("POST", `/client/sessions/${id}/prompt`, { message: "slow" });
  await until("the turn", async () => (await d.desk.api("GET", `/client/sessions/${id}`)).phase === "working");
  await d.closeWindow();
  await until("the question", async () => (await d.windows("^Deskhand$")).length === 2);
  const before = performance.now();
  app.kill("SIGTERM");
  assert.deepEqual(await app.ended, { code: 0, signal: null }, app.said);
  t.diagnostic(`ended after ${Math.round(performance.now() - before)} ms`);
  await until("the end of every agent", () => !d.desk.processes().some(({ command }) => /deskhand|WebKit/.test(command)));
});

onDesktop("closing asks while an agent works: it may go on without the window, which comes back as it was", async (d) => {
  await d.start();
  const window = await d.window();
  await d.xdotool("windowsize", "--sync", window, 900, 600);
  const id = await session(d);
  await d.desk.api("POST", `/client/sessions/${id}/prompt`, { message: "slow" });
  await until("the turn", async () => (await d.desk.api("GET", `/client/sessions/${id}`)).phase === "working");

  const question = async () => {
    await d.closeWindow();
    const asked = await until("the question", async () => (await d.windows("^Deskhand$")).find((one) => one !== window));
    await until("the question's focus", async () => (await d.active()) === asked);
    await pause(1_000); // nothing is answered at once
  };
  const answered = () => until("the end of the question", async () => (await d.windows("^Deskhand$")).length <= 1);
  const works = async () => assert.equal((await d.desk.api("GET", `/client/sessions/${id}`)).phase, "working");
  await question();
  await d.picture("close-question");
  await d.key("Escape");
  await answered();
  await works();
  assert.ok((await d.place(window)).shown);

  await question();
  await d.key("Tab", "Tab", "Return"); // Cancel, Keep running
  await answered();
  await until("the window is hidden", async () => !(await d.place(window)).shown);
  await works();
  const second = d.launch();
  assert.deepEqual(await second.ended, { code: 0, signal: null }, second.said);
  await until("the window is back", async () => (await d.place(window)).shown);
  await works();

  await question();
  await d.key("Tab", "Tab", "Tab", "Return"); // Cancel, Keep running, Stop
  assert.deepEqual(await d.app.ended, { code: 0, signal: null }, d.app.said);

  await d.start();
  const { width, height } = await d.place(await d.window());
  assert.deepEqual({ width, height }, { width: 900, height: 600 });
  const [kept] = (await d.desk.api("GET", "/client/sessions")).items;
  assert.equal(kept.id, id);
  d.app.kill("SIGTERM");
  assert.deepEqual(await d.app.ended, { code: 0, signal: null }, d.app.said);
});

// A caret that blinks keeps the display's timer running in a window that rests, and so did one that was not to, once something was typed.
onDesktop("nothing moves in a window that rests, the caret neither", async (d) => {
  await d.start();
  await rests(d);
});

onDesktop("nor does anything where a message is being written", async (d) => {
  await d.drive();
  await session(d);
  await until("its composer", () =>
    d.js(`document.querySelector("[role=treeitem][aria-level='2'], [role=treeitem]:not([aria-expanded])")?.click();
      return document.activeElement.tagName === "TEXTAREA"`),
  );
  await d.focus();
  await d.key("h", "i");
  await until("the words", () => d.js("return document.activeElement.value === 'hi'"));
  await rests(d);
});

// Each step of an animation is drawn by the processor where there is no GPU.
onDesktop("nothing is animated where there is no GPU", async (d) => {
  await d.drive();
  const still = () => d.js("return matchMedia('(prefers-reduced-motion: reduce)').matches");
  await until("the page to know", async () => (await still()) === !fs.existsSync("/dev/dri"));
});

/** Waits until the window looks the same for a while, and takes next to nothing of the processor. */
async function rests(d) {
  const looks = async () => {
    const seen = new Set();
    for (let n = 0; n < 8; n++) {
      seen.add(fs.readFileSync(await d.picture("rests")).toString("base64"));
      await new Promise((done) => setTimeout(done, 200)); // longer together than a caret is hidden or shown
    }
    return seen.size;
  };
  await until("eight pictures that are the same", async () => (await looks()) === 1, 60_000);
  // What is not seen to move may keep the display's timer running all the same: 30 ms of CPU a second, of processes that take 2.
  const spent = () =>
    d.desk.processes().reduce((sum, { pid }) => {
      const fields = fs.readFileSync(`/proc/${pid}/stat`, "latin1").split(") ").at(-1).split(" ");
      return sum + (Number(fields[11]) + Number(fields[12])) * 10;
    }, 0);
  const took = async () => {
    const before = spent();
    await new Promise((done) => setTimeout(done, 5_000));
    return spent() - before;
  };
  await until("five seconds with less than 80 ms of CPU", async () => (await took()) < 80, 30_000);
}

onDesktop("the page collects its garbage whole and early, and no agent hears of that", async (d) => {
  await d.start();
  await session(d);
  const variables = (word) => {
    const { pid } = d.desk.processes().find(({ command }) => command.includes(word));
    return fs.readFileSync(`/proc/${pid}/environ`, "latin1").split("\0").filter((one) => one.startsWith("JSC_")).sort();
  };
  assert.deepEqual(variables("WebKitWebProcess"), ["JSC_heapGrowthMaxIncrease=0.5", "JSC_smallHeapGrowthFactor=1.5", "JSC_useFTLJIT=0", "JSC_useGenerationalGC=0"]);
  assert.deepEqual(variables("demo-agent"), []);
});

// WebKit kept a style for each kind of cell of every table that was ever drawn: 24 MiB for these.
onDesktop("tables that come and go leave nothing in the page's process", async (d) => {
  await d.drive();
  const { pid } = d.desk.processes().find(({ command }) => command.includes("WebKitWebProcess"));
  const draw = (count) => d.js(`
    const row = (cell) => "<tr>" + ["left", "center", "right"].map((side) => "<" + cell + " align=" + side + ">x</" + cell + ">").join("") + "</tr>";
    for (let n = 0; n < arguments[0]; n++) {
      const one = document.createElement("div");
      one.className = "markdown";
      one.innerHTML = "<table>" + row("th") + row("td") + "</table>";
      document.body.append(one);
      one.offsetHeight;
      one.remove();
    }`, count);
  await draw(200);
  const before = held(pid);
  await draw(1_000);
  let more;
  await until("what was drawn to be gone", () => (more = held(pid) - before) < 8, 20_000).catch(() => assert.fail(`${more.toFixed(1)} MiB more for 1,000 tables`));
});
