// Real agents in the app: opencode and Claude's adapter with the scripted model, from a person's point of view. `make test-agents`
// runs it after the Go tests, which install the agents.
import assert from "node:assert/strict";
import { execFileSync, spawn } from "node:child_process";
import fs from "node:fs";
import os from "node:os";
import path from "node:path";
import { test } from "node:test";
import { App, Looks } from "./app.mjs";
import { Desk } from "./desk.mjs";

const root = path.join(import.meta.dirname, "..", "..");
const cache = path.join(process.env.XDG_CACHE_HOME || path.join(os.homedir(), ".cache"), "deskhand-e2e-agents");
const names = { opencode: "OpenCode", claude: "Claude Code" };

const script = [
  {
    when: "greet the world",
    steps: [
      { text: "I will write the greeting and run it.", shell: "printf 'echo \"Hello, world\"\\n' > hello.sh && sh hello.sh" },
      { text: "**Done.** `hello.sh` greets:\n\n```\nHello, world\n```\n\n- one file is new\n- nothing else was touched" },
    ],
  },
];

/** Starts the scripted model as a program; it ends with the test. */
async function model(t, home) {
  const dir = fs.mkdtempSync(path.join(os.tmpdir(), "scripted-"));
  const file = path.join(dir, "scripted");
  execFileSync("go", ["build", "-o", file, "./e2e/agents/scripted"], { cwd: root, stdio: "inherit" });
  const child = spawn(file, { stdio: ["pipe", "pipe", "inherit"] });
  const ended = new Promise((done) => child.on("exit", done));
  t.after(async () => {
    child.stdin.end();
    await ended;
    fs.rmSync(dir, { recursive: true });
  });
  child.stdin.write(`${JSON.stringify({ home, script })}\n`);
  return new Promise((done, fail) => {
    let out = "";
    child.stdout.on("data", (data) => {
      out += data;
      if (out.endsWith("\n")) done(JSON.parse(out));
    });
    ended.then((code) => fail(new Error(`the scripted model ended with ${code}`)));
  });
}

for (const { id, version, everywhere } of JSON.parse(fs.readFileSync(path.join(root, "e2e/agents/pins.json"), "utf8"))) {
  if (!everywhere) continue;
  test(`${names[id]} ${version} in the app`, async (t) => {
    const bin = path.join(cache, id, version, "node_modules", ".bin");
    assert.ok(fs.existsSync(bin), `${id} is not installed: go test -tags e2e ./e2e/agents/ does that`);
    const desk = Desk.make(t);
    const { environ } = await model(t, desk.home);
    Object.assign(desk.env, environ[id], { PATH: `${bin}:${path.dirname(process.execPath)}:${desk.env.PATH}` });
    await desk.start();
    const app = await App.open(desk);
    const looks = new Looks();
    await app.begin(names[id], desk.work);
    await app.send("Please greet the world from a shell script.");
    await app.request.getByText("sh hello.sh").first().waitFor();
    await looks.at(app.page, `${id}-asks`);
    assert.ok(!fs.existsSync(path.join(desk.work, "hello.sh")));
    await app.request.getByRole("button", { name: /^(Allow once|Yes)( 1)?$/ }).click();
    await app.footers.getByText("Done", { exact: true }).waitFor();
    await app.log.getByText("nothing else was touched").waitFor();
    await app.log.getByRole("button", { name: /hello\.sh/ }).first().click();
    await looks.at(app.page, `${id}-done`);
    assert.equal(fs.readFileSync(path.join(desk.work, "hello.sh"), "utf8"), 'echo "Hello, world"\n');
    t.diagnostic((await app.transcript()).join("\n"));
    looks.done();
  });
}
