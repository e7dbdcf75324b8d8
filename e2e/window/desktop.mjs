// A private desktop for one test: an X server, a session bus and a window manager of its own, around a private Deskhand (Desk).
// In it the shipped program runs, in its real window. Everything that is started is ended by its own handle, before the Desk looks
// for processes that were left.
import assert from "node:assert/strict";
import { execFile, execFileSync, spawn } from "node:child_process";
import fs from "node:fs";
import net from "node:net";
import os from "node:os";
import path from "node:path";
import { promisify } from "node:util";
import { test } from "node:test";
import { Desk, until } from "../browser/desk.mjs";

export { until };

/** A test on a desktop of its own. When it fails, a picture and what the program said are left. */
export function onDesktop(name, body) {
  test(name, async (t) => {
    const d = await Desktop.open(t);
    try {
      await body(d, t);
    } catch (error) {
      t.diagnostic(`the screen: ${await d.picture("failed-" + name.replaceAll(/\W+/g, "-"))}`);
      t.diagnostic(`the program said: ${d.log}`);
      throw error;
    }
  });
}

const here = import.meta.dirname;
const run = promisify(execFile);
export const pause = (ms) => new Promise((done) => setTimeout(done, ms));

/** The program with the window; make test-window builds it. */
export const program = path.resolve(process.env.DESKHAND_DESKTOP_BIN ?? path.join(here, "../../build/bin/deskhand-desktop"));

/** Where screenshots go; git ignores it. */
export const artefacts = process.env.E2E_ARTEFACTS ?? path.join(here, "artefacts");

let helpers;
/** The C programs beside this file, compiled once a test file. */
function compiled() {
  if (helpers) return helpers;
  const dir = fs.mkdtempSync(path.join(os.tmpdir(), "deskhand-window-"));
  const flags = (library) => execFileSync("pkg-config", ["--cflags", "--libs", library], { encoding: "utf8" }).trim().split(/\s+/);
  const compile = (source, target, library, ...options) => {
    const file = path.join(dir, target);
    execFileSync("cc", [...options, "-O1", "-o", file, path.join(here, source), ...flags(library)], { stdio: "inherit" });
    return file;
  };
  helpers = {
    automate: compile("automate.c", "automate.so", "webkit2gtk-4.1", "-shared", "-fPIC"),
    dragfile: compile("dragfile.c", "dragfile", "gtk+-3.0"),
    clipboard: compile("clipboard.c", "clipboard", "gtk+-3.0"),
    empty: compile("empty.c", "empty", "webkit2gtk-4.1"),
  };
  process.on("exit", () => fs.rmSync(dir, { recursive: true, force: true })); // node:test's after would be the first test's
  return helpers;
}

const ELEMENT = "element-6066-11e4-a52e-4f735466cecf";
const TITLE = "^Deskhand$";

export class Desktop {
  /** what was started, in that order */ children = [];
  /** what the program wrote on stderr, all starts together */ log = "";

  /**
   * Opens the desktop, without the program.
   * @param t the test; everything ends with it
   * @param [options] as for Desk.make
   */
  static async open(t, options = {}) {
    const d = new Desktop();
    t.after(() => d.close()); // before the Desk's own end, which finds nothing left then
    d.desk = Desk.make(t, options);
    d.env = { ...d.desk.env, GTK_A11Y: "none", NO_AT_BRIDGE: "1" };
    // Without -noreset the server starts over when its last client leaves, and throws out one that is just coming.
    d.env.DISPLAY = ":" + (await d.#said("Xvfb", ["-displayfd", "3", "-screen", "0", "1400x900x24", "-nolisten", "tcp", "-noreset"]));
    d.env.DBUS_SESSION_BUS_ADDRESS = await d.#said("dbus-daemon", ["--session", "--nofork", "--print-address=3"]);
    d.#spawn("openbox", ["--sm-disable"]);
    // A window that is there before its manager is never given the focus.
    await until("the window manager", async () =>
      (await run("xprop", ["-root", "_NET_SUPPORTING_WM_CHECK"], { env: d.env })).stdout.includes("window id"));
    // At its first key the server's keyboard changes; the manager takes its keys anew then, and misses what is pressed meanwhile.
    await d.key("Shift_L");
    return d;
  }

  #spawn(command, args, { env = this.env, stdio = ["ignore", "ignore", "pipe"] } = {}) {
    const child = spawn(command, args, { env, cwd: this.desk.home, stdio });
    child.said = "";
    child.stderr?.on("data", (data) => (child.said += data));
    child.ended = new Promise((done) => {
      child.on("error", (error) => done({ error }));
      child.on("exit", (code, signal) => done({ code, signal }));
    });
    this.children.push(child);
    return child;
  }

  /** Starts a server that writes one line on descriptor 3 when it is ready: its address. */
  async #said(command, args) {
    const child = this.#spawn(command, args, { stdio: ["ignore", "ignore", "pipe", "pipe"] });
    let line = "";
    child.stdio[3].on("data", (data) => (line += data));
    return until(`${command}'s address`, () => {
      assert.equal(child.exitCode, null, `${command} ended: ${child.said}`);
      return line.endsWith("\n") && line.trim();
    });
  }

  /** Starts the program and waits until its window has the focus. */
  async start() {
    const app = this.launch();
    await until("the window", async () => {
      assert.equal(app.exitCode, null, `the program ended: ${app.said}`);
      return (await this.windows(TITLE)).includes(await this.active());
    });
    this.app = app;
    return app;
  }

  /** Starts the program, or the headless one beside it, and waits for nothing: {said, ended, kill}. */
  launch({ file = program, args = [], stdio } = {}) {
    const app = this.#spawn(file, args, { stdio });
    app.stderr.on("data", (data) => (this.log += data));
    return app;
  }

  /** Opens an empty page in a window of WebKit: {pid, ended, kill}. */
  empty() {
    return this.#spawn(compiled().empty, []);
  }

  /** Starts the program under WebKitWebDriver, so that its page can be asked and clicked. */
  async drive() {
    for (let tries = 1; ; tries++) {
      this.driver = `http://127.0.0.1:${await freePort()}`;
      const driver = this.#spawn("WebKitWebDriver", ["-p", new URL(this.driver).port], {
        env: { ...this.env, LD_PRELOAD: compiled().automate },
      });
      driver.stderr.on("data", (data) => (this.log += data));
      const up = await until("the driver", async () => {
        if (driver.exitCode !== null) return "ended"; // somebody took the port in between
        return (await fetch(this.driver + "/status")).ok && "ready";
      });
      if (up === "ready" && driver.exitCode === null) break;
      assert.ok(tries < 5, `WebKitWebDriver did not start: ${driver.said}`);
    }
    const { sessionId } = await this.#ask("POST", "/session", {
      // The driver would wait for the end of navigations that the window refuses.
      capabilities: { alwaysMatch: { pageLoadStrategy: "none", "webkitgtk:browserOptions": { binary: program, args: [] } } },
    });
    this.page = `/session/${sessionId}`;
    await until("the page", () => this.js("return document.readyState === 'complete' && document.querySelector('#app')?.childElementCount > 0"));
  }

  async #ask(method, route, body) {
    const response = await fetch(this.driver + route, { method, body: body && JSON.stringify(body), signal: AbortSignal.timeout(20_000) });
    const { value } = await response.json();
    if (!response.ok) throw new Error(`${route}: ${value.error}: ${value.message}`);
    return value;
  }

  /** Runs a script in the page. */
  js(script, ...args) {
    return this.#ask("POST", this.page + "/execute/sync", { script, args });
  }

  url() {
    return this.#ask("GET", this.page + "/url");
  }

  /** Waits for an element by XPath. */
  find(xpath) {
    return until(xpath, async () => (await this.#ask("POST", this.page + "/element", { using: "xpath", value: xpath }))[ELEMENT]);
  }

  async click(xpath) {
    await until(`a click on ${xpath}`, async () => {
      await this.#ask("POST", `${this.page}/element/${await this.find(xpath)}/click`, {});
      return true;
    });
  }

  async type(xpath, text) {
    await this.#ask("POST", `${this.page}/element/${await this.find(xpath)}/value`, { text });
  }

  /** Waits until the page shows a text. */
  async shows(text) {
    await until(`the text ${JSON.stringify(text)}`, () => this.js("return document.body.innerText.includes(arguments[0])", text));
  }

  async xdotool(...args) {
    const { stdout } = await run("xdotool", args.map(String), { env: this.env, timeout: 10_000 });
    return stdout.trim();
  }

  async key(...keys) {
    await this.xdotool("key", "--delay", "30", ...keys);
  }

  /** The visible windows whose title matches. */
  async windows(title) {
    for (let tries = 1; ; tries++) {
      try {
        return (await this.xdotool("search", "--onlyvisible", "--name", title)).split("\n").filter(Boolean);
      } catch (error) {
        // It says nothing where none matches, and breaks off where one goes while it looks.
        if (!error.stderr?.trim()) return [];
        if (tries === 10) throw error;
      }
    }
  }

  /** The window that has the focus; nothing where none has. */
  active() {
    return this.xdotool("getactivewindow").catch(() => "");
  }

  /** Waits until a window has the focus, the app's own or another. */
  async focus(window) {
    await until("the window's focus", async () => {
      const active = await this.active();
      if (active && active === (window ?? (await this.window()))) return true;
      throw new Error(`${active ? await this.xdotool("getwindowname", active).catch(() => "a window that is gone") : "no window"} has it`);
    });
  }

  /** Gives the app's window the focus, as a click on its title does. A manager may leave none the focus when a dialog goes. */
  async activate() {
    const window = await this.window();
    await this.xdotool("windowactivate", window);
    await this.focus(window);
  }

  /** The app's window: its id. */
  async window() {
    return until("the window", async () => (await this.windows(TITLE)).at(-1));
  }

  /** Where a window's content is on the screen. xdotool counts the title bar twice, so this asks xwininfo. */
  async place(window) {
    const { stdout } = await run("xwininfo", ["-id", window], { env: this.env });
    const number = (label) => Number(new RegExp(`${label}:\\s+(-?\\d+)`).exec(stdout)[1]);
    return {
      x: number("Absolute upper-left X"), y: number("Absolute upper-left Y"), width: number("Width"), height: number("Height"),
      shown: /Map State: IsViewable/.test(stdout),
    };
  }

  /** Waits for a native dialog, and gives its id once it has the focus. */
  async dialog(title) {
    const window = await until(`the dialog ${title}`, async () => (await this.windows(title)).at(-1));
    await this.focus(window);
    return window;
  }

  /** Answers a file chooser with a path, as a person at the keyboard. */
  async choose(title, file) {
    const window = await this.dialog(title);
    // A name that is typed has the keyboard laid out anew for each sign that it has no key for, which a busy program learns too late; and the
    // chooser completes it while it grows.
    const clipboard = await this.#copy("text", file);
    await this.key("ctrl+l");
    await pause(300); // the entry has no sign that we could wait for
    await this.key("ctrl+a", "ctrl+v");
    // Return is taken as "complete the name" until the chooser has looked the path up, so it may have to be pressed again; but not while
    // the dialog is only slow to go, or the app's own window gets it.
    const gone = async () => !(await this.windows(title)).includes(window);
    await until("the end of the dialog", async () => {
      await this.key("Return");
      return until("its end", gone, 3_000);
    });
    clipboard.kill();
  }

  /** Drags a real file from another window onto a point of ours, and has a look before it lets go; says whether it was taken. */
  async drop(file, { x, y }, look = async () => {}) {
    const source = this.#spawn(compiled().dragfile, [file], { stdio: ["ignore", "pipe", "pipe"] });
    let words = "";
    source.stdout.on("data", (data) => (words += data));
    await until("the drag source", () => words.includes("ready"));
    await this.xdotool("mousemove", 30, 20, "mousedown", 1);
    for (let step = 1; step <= 12; step++) {
      await this.xdotool("mousemove", Math.round(30 + ((x - 30) * step) / 12), Math.round(20 + ((y - 20) * step) / 12));
      await pause(30);
    }
    await pause(200); // the target asks for the data before it says that it takes them
    await look();
    await this.xdotool("mouseup", 1);
    const word = await until("the end of the drag", () => /dropped|refused/.exec(words)?.[0]);
    source.kill();
    return word === "dropped";
  }

  /** Puts a picture on the clipboard. */
  copyPicture(file) {
    return this.#copy(file);
  }

  async #copy(...what) {
    const owner = this.#spawn(compiled().clipboard, what, { stdio: ["ignore", "pipe", "pipe"] });
    let words = "";
    owner.stdout.on("data", (data) => (words += data));
    await until("the clipboard", () => words.includes("ready"));
    return owner;
  }

  /** Closes the window that has the focus, as a person does: the app's own. */
  async closeWindow() {
    await this.focus();
    await this.key("alt+F4");
  }

  /** A picture of the whole screen. WebDriver's own hangs without a GPU. */
  async picture(name) {
    fs.mkdirSync(artefacts, { recursive: true });
    const file = path.join(artefacts, `${name}.png`);
    await run("import", ["-window", "root", file], { env: this.env });
    return file;
  }

  /** A picture of the app's window alone, or of another one. */
  async portrait(file, window) {
    await run("import", ["-window", window ?? (await this.window()), file], { env: this.env });
  }

  async close() {
    if (this.page) await this.#ask("DELETE", this.page).catch(() => {}); // the program ends with its session, which the driver calls an error
    for (const child of this.children.reverse()) {
      if (child.exitCode === null && child.signalCode === null) child.kill("SIGTERM");
      const late = setTimeout(() => child.kill("SIGKILL"), 5000);
      await child.ended;
      clearTimeout(late);
    }
  }
}

async function freePort() {
  const server = net.createServer();
  await new Promise((done) => server.listen(0, "127.0.0.1", done));
  const { port } = server.address();
  await new Promise((done) => server.close(done));
  return port;
}
