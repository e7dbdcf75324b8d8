// A private Deskhand for one test: its own directories, the real program, one Chromium for all tests of a file. Everything that is
// started is ended by its own handle, and a test fails when a process that carries its mark is still there at the end.
import assert from "node:assert/strict";
import { execFileSync, spawn } from "node:child_process";
import { randomUUID } from "node:crypto";
import fs from "node:fs";
import http from "node:http";
import os from "node:os";
import path from "node:path";
import { after } from "node:test";
import { chromium } from "playwright-core";

const here = import.meta.dirname;
const root = path.join(here, "..", "..");

/** Where screenshots go; git ignores it. */
export const artefacts = process.env.E2E_ARTEFACTS ?? path.join(here, "artefacts");

const chromiumPaths = [process.env.CHROMIUM, "/usr/bin/chromium", "/usr/bin/chromium-browser", "/usr/bin/google-chrome"];

/** How long a condition may take; the machine may be busy. */
const patience = 15_000;

const pause = (ms) => new Promise((done) => setTimeout(done, ms));

/** Repeats f until it gives something true, and gives that. */
export async function until(what, f, ms = patience) {
  const deadline = Date.now() + ms;
  for (let last; ; await pause(20)) {
    try {
      last = await f();
      if (last) return last;
    } catch (error) {
      last = error;
    }
    if (Date.now() > deadline) throw new Error(`${what} did not come in ${ms} ms; last: ${last}`);
  }
}

let built;
/** The program under test: DESKHAND_BIN, or built from this tree once a test file. */
export function program() {
  if (process.env.DESKHAND_BIN) return path.resolve(process.env.DESKHAND_BIN);
  if (!built) {
    built = path.join(fs.mkdtempSync(path.join(os.tmpdir(), "deskhand-bin-")), "deskhand");
    fs.chmodSync(path.dirname(built), 0o755);
    execFileSync("go", ["build", "-o", built, "deskhand"], { cwd: root, env: { ...process.env, CGO_ENABLED: "0" }, stdio: "inherit" });
  }
  return built;
}

let browser;
/** The one Chromium of a test file, without any network of its own. */
async function chrome() {
  if (!browser) {
    const executablePath = chromiumPaths.find((file) => file && fs.existsSync(file));
    assert.ok(executablePath, "Chromium is not installed (apt-get install chromium), or set CHROMIUM to its path");
    browser = chromium.launch({
      executablePath,
      args: [
        "--headless=new", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-background-networking",
        "--disable-component-update", "--disable-sync",
      ],
    });
  }
  return browser;
}

after(async () => {
  await (await browser)?.close();
  if (built) fs.rmSync(path.dirname(built), { recursive: true, force: true });
});

const MARK = "DESKHAND_E2E_MARK";

export class Desk {
  /** @type {import("node:child_process").ChildProcess | undefined} */ server;
  /** what the server wrote on stderr, all starts together */ log = "";
  /** errors that pages reported: none is expected */ complaints = [];
  contexts = [];

  /**
   * Makes the directories; start() starts the server.
   * @param t the test; everything ends with it
   * @param {{agents?: object[], env?: Record<string, string>}} [options] agents for agents.json; variables for the server
   */
  static make(t, { agents = [], env = {} } = {}) {
    const d = new Desk();
    d.mark = randomUUID();
    d.dir = fs.mkdtempSync(path.join(os.tmpdir(), "desk-"));
    for (const name of ["home", "data", "config", "cache", "state", "run", "tmp"]) {
      d[name] = path.join(d.dir, name);
      fs.mkdirSync(d[name], { mode: 0o700 });
    }
    d.work = path.join(d.home, "project"); // where agents work
    fs.mkdirSync(d.work);
    d.env = {
      HOME: d.home, XDG_DATA_HOME: d.data, XDG_CONFIG_HOME: d.config, XDG_CACHE_HOME: d.cache, XDG_STATE_HOME: d.state, XDG_RUNTIME_DIR: d.run,
      TMPDIR: d.tmp, PATH: "/usr/bin:/bin", SHELL: "/bin/sh", LANG: "C.UTF-8", [MARK]: d.mark, ...env,
    };
    if (agents.length) d.agents(agents);
    t.after(() => d.close(t));
    return d;
  }

  /** Makes the directories and starts the server. */
  static async open(t, options) {
    const d = Desk.make(t, options);
    await d.start();
    return d;
  }

  /** Writes agents.json. */
  agents(list) {
    const dir = path.join(this.config, "deskhand");
    fs.mkdirSync(dir, { recursive: true });
    fs.writeFileSync(path.join(dir, "agents.json"), JSON.stringify({ agents: list }));
  }

  /** An executable file in the private world, for example an agent. */
  script(name, text) {
    const file = path.join(this.dir, name);
    fs.writeFileSync(file, text, { mode: 0o755 });
    return file;
  }

  /** Runs a command of the program to its end: {code, out, err}. */
  async command(args, { env = this.env, bin = program(), ...options } = {}) {
    const child = spawn(bin, args, { env, cwd: this.home, stdio: ["ignore", "pipe", "pipe"], ...options });
    let out = "", err = "";
    child.stdout.on("data", (data) => (out += data));
    child.stderr.on("data", (data) => (err += data));
    const late = setTimeout(() => child.kill("SIGKILL"), patience);
    const code = await new Promise((done) => child.on("close", (code, signal) => done(code ?? signal)));
    clearTimeout(late);
    return { code, out, err };
  }

  /** Starts the server, on a free port or the one told, and reads its one-time link. */
  async start(port = 0) {
    const child = spawn(program(), ["server", "--port", String(port)], { env: this.env, cwd: this.home, stdio: ["ignore", "pipe", "pipe"] });
    this.server = child;
    this.ended = new Promise((done) => child.on("exit", (code, signal) => done({ code, signal })));
    let out = "";
    child.stderr.on("data", (data) => (this.log += data));
    this.link = await new Promise((done, fail) => {
      child.stdout.on("data", (data) => {
        out += data;
        const link = /http:\/\/\S+(?=\s)/.exec(out);
        if (link) done(link[0]);
      });
      this.ended.then((end) => fail(new Error(`the server ended (${JSON.stringify(end)}): ${out}${this.log}`)));
    });
    this.url = new URL("/", this.link).href;
  }

  /** Ends the server as a service manager would. */
  async stop() {
    this.server.kill("SIGTERM");
    const end = await this.ended;
    this.server = undefined;
    assert.deepEqual(end, { code: 0, signal: null }, this.log);
  }

  /** Stops the server and starts it again at the same address, as a person does who has the page open. */
  async restart() {
    await this.stop();
    await this.start(Number(new URL(this.url).port));
  }

  /** Ends the server without warning. */
  async kill() {
    this.server.kill("SIGKILL");
    await this.ended;
    this.server = undefined;
  }

  /** Opens the app: with the link of the start, or where told. */
  async page(url = this.link, options = {}) {
    const context = await (await chrome()).newContext({ viewport: { width: 1280, height: 800 }, colorScheme: "light", reducedMotion: "reduce", ...options });
    context.setDefaultTimeout(patience);
    this.contexts.push(context);
    const page = await context.newPage();
    page.on("pageerror", (error) => this.complaints.push(String(error)));
    page.on("console", (message) => {
      // What the browser says about answers that are no success: the tests look at those themselves.
      if (message.type() === "error" && !/^Failed to load resource/.test(message.text())) this.complaints.push(message.text());
    });
    page.on("request", (request) => {
      if (!request.url().startsWith(this.url) && !/^(data|blob):/.test(request.url())) this.complaints.push(`asked ${request.url()}`);
    });
    await page.goto(url);
    return page;
  }

  /** One call of the client API over the private socket, as the command line does it; gives the body, fails on a problem. */
  async api(method, route, body) {
    const { status, data } = await this.call(method, route, body);
    assert.ok(status >= 200 && status < 300, `${method} ${route}: ${status} ${JSON.stringify(data)}`);
    return data;
  }

  call(method, route, body) {
    const { socket: socketPath } = JSON.parse(fs.readFileSync(path.join(this.data, "deskhand", "owner.json"), "utf8"));
    const content = body === undefined ? undefined : JSON.stringify(body);
    return new Promise((done, fail) => {
      const request = http.request({
        socketPath, method, path: route, timeout: 40_000, agent: false,
        headers: content === undefined ? {} : { "Content-Type": "application/json", "Content-Length": Buffer.byteLength(content) },
      }, (response) => {
        const parts = [];
        response.on("data", (part) => parts.push(part));
        response.on("end", () => {
          const text = Buffer.concat(parts).toString();
          const json = /json/.test(response.headers["content-type"] ?? "");
          done({ status: response.statusCode, data: json ? JSON.parse(text) : text });
        });
        response.on("error", fail);
      });
      request.on("error", fail);
      request.end(content);
    });
  }

  /** The session that was touched last. */
  async session() {
    return (await this.api("GET", "/client/sessions?limit=1")).items[0];
  }

  /** The whole transcript of a session. */
  async entries(id) {
    const all = [];
    for (let before = ""; ; ) {
      const page = await this.api("GET", `/client/sessions/${id}/entries?limit=200${before}`);
      all.unshift(...page.items);
      if (!page.next) return all;
      before = `&before=${page.next}`;
    }
  }

  /** Running processes that carry the mark: [{pid, command}]. */
  processes() {
    const found = [];
    for (const pid of fs.readdirSync("/proc").filter((name) => /^\d+$/.test(name))) {
      try {
        if (!fs.readFileSync(`/proc/${pid}/environ`, "latin1").split("\0").includes(`${MARK}=${this.mark}`)) continue;
        const command = fs.readFileSync(`/proc/${pid}/cmdline`, "latin1").replaceAll("\0", " ").trim();
        if (command) found.push({ pid: Number(pid), command }); // a zombie has none
      } catch { /* it ended while we looked */ }
    }
    return found;
  }

  /** The pid of the one running agent whose command has a word. */
  async agent(word = "demo-agent") {
    return until(`the process ${word}`, () => {
      const list = this.processes().filter((process) => process.command.includes(word));
      return list.length === 1 && list[0].pid;
    });
  }

  /** Waits until no process is left, and gives how long that took. */
  async gone(ms = 5000) {
    const start = performance.now();
    await until("the end of every process", () => {
      const left = this.processes();
      if (left.length) throw new Error(JSON.stringify(left));
      return true;
    }, ms);
    return performance.now() - start;
  }

  async close(t) {
    for (const context of this.contexts) await context.close();
    if (this.server) {
      this.server.kill("SIGTERM");
      const late = setTimeout(() => this.server.kill("SIGKILL"), 5000);
      await this.ended;
      clearTimeout(late);
    }
    try {
      await this.gone();
      assert.deepEqual(this.complaints, [], "pages complained");
    } catch (error) {
      t.diagnostic(`the server said: ${this.log}`);
      throw error;
    } finally {
      for (const { pid } of this.processes()) process.kill(pid, "SIGKILL");
      fs.rmSync(this.dir, { recursive: true, force: true, maxRetries: 5, retryDelay: 100 });
    }
  }
}
