// The SDK's own way to start a server, SandboxAgent.start with its local provider, with our program in place of its own.
import assert from "node:assert/strict";
import fs from "node:fs";
import net from "node:net";
import path from "node:path";
import { test } from "node:test";
import { SandboxAgent } from "sandbox-agent";
import { local } from "sandbox-agent/local";
import { program } from "../place.mjs";
import { Runtime, token, turn, until } from "./runtime.mjs";

/** Starts a server as the SDK does, with the directories of the place and a note of its flags; it ends with the test. */
async function started(place, options = {}) {
  const args = path.join(place.dir, "args");
  const wrapper = place.script("sandbox-agent", `#!/bin/sh\necho "$@" > ${args}\nexec ${program()} "$@"\n`);
  process.env.SANDBOX_AGENT_BIN = wrapper;
  const sdk = await SandboxAgent.start({ sandbox: local({ log: "silent", env: place.env, ...options }) });
  place.ends.push(() => sdk.sandboxId && sdk.destroySandbox());
  return { sdk, args: fs.readFileSync(args, "utf8").trim().split(" "), port: Number(sdk.sandboxId.split(":")[1]) };
}

/** The servers that run in a place. */
const servers = (place) => place.processes().filter(({ command }) => / server --/.test(command));

async function freePort() {
  const probe = net.createServer().listen(0, "127.0.0.1");
  await new Promise((done) => probe.on("listening", done));
  const { port } = probe.address();
  await new Promise((done) => probe.close(done));
  return port;
}

test("the SDK starts our program with its flags, on a free port and with a token of its own", async (t) => {
  const place = Runtime.make(t);
  const { sdk, args, port } = await started(place);
  assert.equal(sdk.sandboxId, `local/127.0.0.1:${port}`);
  assert.deepEqual(args.slice(0, -1), ["server", "--host", "127.0.0.1", "--port", `${port}`, "--token"]);
  assert.match(args.at(-1), /^[0-9a-f]{48}$/);
  assert.equal(servers(place).length, 1);
  assert.deepEqual(await sdk.getHealth(), { status: "ok" });
  const url = `http://127.0.0.1:${port}/v1/health`;
  assert.equal((await fetch(url)).status, 401);
  assert.equal((await fetch(url, { headers: { Authorization: `Bearer ${args.at(-1)}` } })).status, 200);
});

test("sessions and files work through the SDK's own fetch", async (t) => {
  const place = Runtime.make(t);
  const { sdk } = await started(place);
  const session = await sdk.createSession({ agent: "mock", cwd: place.work });
  session.onPermissionRequest(({ id }) => session.respondPermission(id, "once"));
  assert.equal((await turn(session, "permission")).text, "The edit is written. You allowed it once.");
  // Its requests are streams without a length.
  const file = path.join(place.work, "träe.bin");
  const bytes = Buffer.alloc(3 << 20, "äöü");
  assert.deepEqual(await sdk.writeFsFile({ path: file }, bytes), { path: file, bytesWritten: bytes.length });
  assert.ok(bytes.equals(await sdk.readFsFile({ path: file })));
  assert.deepEqual(await sdk.mkdirFs({ path: path.join(place.work, "new") }), { path: path.join(place.work, "new") });
  const query = { directory: place.work, mcpName: "one" };
  await sdk.setMcpConfig(query, { type: "local", command: "mcp", args: [] });
  assert.deepEqual(await sdk.getMcpConfig(query), { type: "local", command: "mcp", args: [] });
});

test("dispose ends the agents and leaves the server, destroySandbox ends both", async (t) => {
  const place = Runtime.make(t);
  const { sdk, port, args } = await started(place);
  const session = await sdk.createSession({ agent: "mock", cwd: place.work });
  await turn(session, "echo");
  assert.equal(place.agentProcesses().length, 1);
  await sdk.dispose();
  assert.deepEqual(place.agentProcesses(), []);
  assert.equal(servers(place).length, 1);

  const again = await SandboxAgent.connect({ baseUrl: `http://127.0.0.1:${port}`, token: args.at(-1) });
  await again.createSession({ agent: "mock", cwd: place.work });
  assert.equal(place.agentProcesses().length, 1);
  const before = performance.now();
  await sdk.destroySandbox();
  const took = performance.now() - before;
  await place.gone(); // the watchdog ends just after
  assert.ok(took < 1500, `${took} ms`);
  await again.dispose();
});

test("a server whose clients have gone ends at once", async (t) => {
  const place = Runtime.make(t);
  const { sdk } = await started(place);
  await turn(await sdk.createSession({ agent: "mock", cwd: place.work }), "echo");
  await sdk.dispose();
  // Node holds a connection ready where the stream was, on which nothing is asked any more.
  const before = performance.now();
  await sdk.destroySandbox();
  const took = performance.now() - before;
  assert.ok(took < 1000, `${took} ms`);
});

test("the port and the token can be chosen, and a later client takes up the same server", async (t) => {
  const place = Runtime.make(t);
  const port = await freePort();
  const { sdk, args } = await started(place, { port, token });
  assert.deepEqual(args, ["server", "--host", "127.0.0.1", "--port", `${port}`, "--token", token]);
  assert.deepEqual(await sdk.listAcpServers(), { servers: [] });

  const later = await SandboxAgent.start({ sandbox: local({ token }), sandboxId: sdk.sandboxId });
  assert.deepEqual(await later.getHealth(), { status: "ok" });
  assert.equal(servers(place).length, 1);
  await later.dispose();
});

test("every address of this machine that the SDK can name works", async (t) => {
  const place = Runtime.make(t);
  for (const host of ["localhost", "0.0.0.0"]) {
    const { sdk, args } = await started(place, { host });
    assert.equal(args[2], host);
    assert.deepEqual(await sdk.listAcpServers(), { servers: [] });
    await sdk.destroySandbox();
  }
});

test("it works while another Deskhand has the data directory, and leaves that one alone", async (t) => {
  const place = Runtime.make(t);
  await place.start();
  const own = await place.connect();
  const there = await own.createSession({ agent: "mock", cwd: place.work });
  const { sdk, port } = await started(place);
  assert.notEqual(Number(new URL(place.url).port), port);
  const session = await sdk.createSession({ agent: "mock", cwd: place.work });
  assert.equal((await turn(session, "echo")).response.stopReason, "end_turn");
  const [mine, theirs] = [await own.listAcpServers(), await sdk.listAcpServers()];
  assert.deepEqual([mine.servers.length, theirs.servers.length], [1, 1]);
  assert.notEqual(mine.servers[0].serverId, theirs.servers[0].serverId);

  await sdk.destroySandbox();
  await until("the end of the second server", () => servers(place).length === 1);
  assert.deepEqual(place.agentProcesses().map(({ pid }) => pid), [mine.servers[0].pid]);
  assert.equal((await turn(there, "echo")).response.stopReason, "end_turn");
});

test("three servers that start at once all work", async (t) => {
  const place = Runtime.make(t);
  const all = await Promise.all([1, 2, 3].map(() => started(place)));
  assert.equal(new Set(all.map(({ port }) => port)).size, 3);
  assert.equal(servers(place).length, 3);
  const turns = await Promise.all(all.map(async ({ sdk }) => turn(await sdk.createSession({ agent: "mock", cwd: place.work }), "echo")));
  assert.deepEqual(turns.map(({ response }) => response.stopReason), ["end_turn", "end_turn", "end_turn"]);
});

test("a port that is taken is told at once", async (t) => {
  const place = Runtime.make(t);
  const { port } = await started(place);
  const before = performance.now();
  await assert.rejects(started(place, { port }), /^Error: sandbox-agent exited before becoming healthy\.$/);
  assert.ok(performance.now() - before < 5000);
});

test("a program that ends without a word takes its server and its agents along, stubborn ones too", async (t) => {
  const place = Runtime.make(t);
  const script = (end) => `
    import { SandboxAgent } from "sandbox-agent";
    import { local } from "sandbox-agent/local";
    process.on("unhandledRejection", () => {});
    const sdk = await SandboxAgent.start({ sandbox: local({ log: "silent" }) });
    const session = await sdk.createSession({ agent: "mock", cwd: process.env.HOME });
    let told = "";
    const stubborn = new Promise((done) => session.onEvent(({ payload }) => {
      told += payload.params?.update?.content?.text ?? "";
      if (/Its pid is \\d+\\./.test(told)) done();
    }));
    session.prompt([{ type: "text", text: "stubborn" }]);
    await stubborn;
    console.log(JSON.stringify(sdk.sandboxId));
    ${end}
  `;
  for (const end of ["process.exit(0);", "await sdk.destroySandbox(); process.exit(0);"]) {
    const { code, said, err } = await place.program(script(end), { SANDBOX_AGENT_BIN: program() });
    assert.equal(code, 0, err);
    assert.match(said[0], /^local\/127\.0\.0\.1:\d+$/);
    await place.gone();
  }
});
