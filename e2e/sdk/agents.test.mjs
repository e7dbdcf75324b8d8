// Which agents there are, as the SDK tells it.
import assert from "node:assert/strict";
import { test } from "node:test";
import { problem, Runtime } from "./runtime.mjs";

const capabilities = [
  "commandExecution", "errorEvents", "fileAttachments", "fileChanges", "images", "itemStarted", "mcpTools", "permissions", "planMode", "questions",
  "reasoning", "sessionLifecycle", "sharedProcess", "status", "streamingDeltas", "textMessages", "toolCalls", "toolResults",
];

const unsupported = (agent) => (error) => {
  problem(400, "unsupported_agent")(error);
  assert.equal(error.problem.detail, `unsupported agent: ${agent}`);
  assert.equal(error.problem.agent, agent);
  return true;
};

test("listAgents tells every agent, installed or not, with its capabilities", async (t) => {
  const runtime = await Runtime.open(t);
  const sdk = await runtime.connect();
  const { agents } = await sdk.listAgents();
  const ids = agents.map(({ id }) => id);
  for (const id of ["mock", "claude", "codex", "opencode"]) assert.ok(ids.includes(id), `${id} is not in ${ids}`);
  assert.equal(new Set(ids).size, ids.length);
  for (const agent of agents) {
    assert.deepEqual(Object.keys(agent.capabilities).sort(), capabilities, agent.id);
    for (const value of Object.values(agent.capabilities)) assert.equal(typeof value, "boolean");
    assert.equal(typeof agent.installed, "boolean", agent.id);
    assert.equal(typeof agent.credentialsAvailable, "boolean", agent.id);
    assert.ok(agent.name, agent.id);
    assert.equal(agent.configOptions, undefined, agent.id);
    assert.deepEqual(await sdk.getAgent(agent.id), agent);
  }
  const of = (id) => agents.find((agent) => agent.id === id);
  assert.equal(of("mock").installed, true);
  assert.equal(of("mock").credentialsAvailable, true);
  assert.equal(of("claude").installed, false); // the test's PATH has none
  assert.deepEqual(["mock", "claude", "opencode"].map((id) => of(id).capabilities.questions), [true, true, false]);
});

test("with config an agent tells its version, its path and the options that its sessions have", async (t) => {
  const runtime = await Runtime.open(t);
  const sdk = await runtime.connect();
  const { version, path, configOptions, ...about } = await sdk.getAgent("mock", { config: true });
  assert.ok(version);
  assert.ok(path);
  assert.deepEqual(about, await sdk.getAgent("mock"));
  const session = await sdk.createSession({ agent: "mock", cwd: runtime.work });
  assert.deepEqual(configOptions, await session.getConfigOptions());
  const listed = await sdk.listAgents({ config: true, noCache: true });
  assert.deepEqual(listed.agents.find(({ id }) => id === "mock").configOptions, configOptions);
});

test("an agent that runs is told so", async (t) => {
  const runtime = await Runtime.open(t);
  const sdk = await runtime.connect();
  assert.notEqual((await sdk.getAgent("mock")).serverStatus?.status, "running");
  await sdk.createSession({ agent: "mock", cwd: runtime.work });
  const { serverStatus } = await sdk.getAgent("mock");
  assert.equal(serverStatus.status, "running");
  assert.ok(serverStatus.uptimeMs >= 0 && serverStatus.uptimeMs < 60_000, `${serverStatus.uptimeMs}`);
});

test("installing the built-in agent finds it there already", async (t) => {
  const runtime = await Runtime.open(t);
  const sdk = await runtime.connect();
  for (const request of [undefined, { reinstall: true }]) {
    const { already_installed: already, artifacts } = await sdk.installAgent("mock", request);
    assert.equal(already, true);
    for (const { source } of artifacts) assert.equal(source, "builtin");
  }
});

test("an agent that does not exist is unsupported, to look at and to install", async (t) => {
  const runtime = await Runtime.open(t);
  const sdk = await runtime.connect();
  await assert.rejects(sdk.getAgent("nope"), unsupported("nope"));
  await assert.rejects(sdk.getAgent("a/b ü", { config: true }), unsupported("a/b ü"));
  await assert.rejects(sdk.installAgent("nope"), unsupported("nope"));
});
