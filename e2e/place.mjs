// A private place for one test: directories of its own, the real program in them, and its processes. Everything that is started is
// ended by its own handle, and a test fails when a process that carries its mark is still there at the end.
import assert from "node:assert/strict";
import { execFileSync, spawn } from "node:child_process";
import { randomUUID } from "node:crypto";
import fs from "node:fs";
import os from "node:os";
import path from "node:path";
import { after } from "node:test";

const root = path.join(import.meta.dirname, "..");

/** How long any condition may take. The bound ends a test that has failed, and says nothing about speed: a machine may be slow and busy. */
export const patience = 60_000;

const pause = (ms) => new Promise((done) => setTimeout(done, ms));

/** Repeats f until it gives something true, and gives that. */
export async function until(what, f, ms = patience) {
  const deadline = Date.now() + ms;
  for (let last, wait = 20; ; await pause(wait), wait = Math.min(wait * 1.5, 100)) {
    try {
      last = await f();
      if (last) return last;
    } catch (error) {
      last = error;
    }
    if (Date.now() > deadline) throw new Error(`${what} did not come in ${ms} ms; last: ${last}`);
  }
}

let bin;
const built = new Map();
/** A program of this tree, built once a test file. */
function build(name, source) {
  if (!built.has(name)) {
    bin ??= fs.mkdtempSync(path.join(os.tmpdir(), "deskhand-bin-"));
    fs.chmodSync(bin, 0o755);
    built.set(name, path.join(bin, name));
    execFileSync("go", ["build", "-o", built.get(name), source], { cwd: root, env: { ...process.env, CGO_ENABLED: "0" }, stdio: "inherit" });
  }
  return built.get(name);
}

/** The program under test: DESKHAND_BIN, or built from this tree. */
export function program() {
  return process.env.DESKHAND_BIN ? path.resolve(process.env.DESKHAND_BIN) : build("deskhand", "deskhand");
}

/**
 * The program of backend/agenttest: DESKHAND_TEST_AGENTS, or built from this tree. As demo-agent it is the built-in agent with more words, such as
 * crash and slow, and every Place has it in place of the built-in one.
 */
export function testAgents() {
  return process.env.DESKHAND_TEST_AGENTS ?? build("agents-of-tests", "deskhand/backend/agenttest/program");
}

after(() => {
  if (bin) fs.rmSync(bin, { recursive: true, force: true });
});

const MARK = "DESKHAND_E2E_MARK";

// node:test ends a file that takes too long by SIGTERM, and no hook runs then.
const running = new Set();
process.on("exit", () => running.forEach((child) => child.kill("SIGKILL")));
process.once("SIGTERM", () => process.exit(143));

export class Place {
  /** @type {import("node:child_process").ChildProcess | undefined} */ server;
  /** what the server wrote on stderr, all starts together */ log = "";
  /** more flags for the server */ flags = [];

  /**
   * Makes the directories; start() starts the server.
   * @param t the test; everything ends with it
   * @param {{agents?: object[], env?: Record<string, string>}} [options] agents for agents.json; variables for the server
   */
  static make(t, { agents = [], env = {} } = {}) {
    const d = new this();
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
      TMPDIR: d.tmp, PATH: "/usr/bin:/bin", SHELL: "/bin/sh", DESKHAND_LOGIN_SHELL: "off", DESKHAND_CATALOGUE_URL: "off",
      DESKHAND_DEMO_AGENT: testAgents(),
      // On a busy machine a snapshot takes longer than a person should wait: then the turn could not be undone.
      DESKHAND_HOLD_PROMPT: "1m",
      LANG: "C.UTF-8", [MARK]: d.mark, ...env,
    };
    if (agents.length) d.agents(agents);
    t.after(() => d.close(t));
    return d;
  }

  /** Makes the directories and starts the server. */
  static async open(t, options) {
    const d = this.make(t, options);
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
    const args = ["server", "--port", String(port), ...this.flags];
    const child = spawn(program(), args, { env: this.env, cwd: this.home, stdio: ["ignore", "pipe", "pipe"] });
    this.server = child;
    running.add(child);
    this.ended = new Promise((done) => child.on("exit", (code, signal) => {
      running.delete(child);
      done({ code, signal });
    }));
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

  /** Waits until no process is left. */
  async gone() {
    await until("the end of every process", () => {
      const left = this.processes();
      if (left.length) throw new Error(JSON.stringify(left));
      return true;
    });
  }

  /** Ends the server, and fails when what must hold at the end does not. */
  async close(t) {
    if (this.server) {
      this.server.kill("SIGTERM");
      const late = setTimeout(() => this.server.kill("SIGKILL"), patience);
      await this.ended;
      clearTimeout(late);
    }
    try {
      await this.atEnd();
    } catch (error) {
      t.diagnostic(`the server said: ${this.log}`);
      throw error;
    } finally {
      for (const { pid } of this.processes()) process.kill(pid, "SIGKILL");
      fs.rmSync(this.dir, { recursive: true, force: true, maxRetries: 5, retryDelay: 100 });
    }
  }

  /** What must hold at the end. */
  async atEnd() {
    await this.gone();
  }
}
