// What goes wrong with an agent, and what a program that uses the SDK sees of it. A POST that fails makes the SDK reject a promise that
// nobody holds, and leaves the call that made it waiting; so these programs have processes of their own.
import assert from "node:assert/strict";
import { test } from "node:test";
import { kindOf, Runtime, textOf, turn } from "./runtime.mjs";

/** The start of a program: sdk, say(), and the POST's failure as a value. */
const prelude = `
  import { SandboxAgent } from "sandbox-agent";
  const say = (value) => console.log(JSON.stringify(value));
  const failure = new Promise((tell) => {
    process.on("unhandledRejection", ({ name, message, status, problem }) => tell({ name, message, status, problem }));
  });
  console.error = () => {}; // the SDK tells the same there
  const sdk = await SandboxAgent.connect({ baseUrl: process.env.URL, token: process.env.TOKEN });
`;

test("an agent that crashes in mid-turn fails the prompt's POST with its exit code and last words, and the stream has all", async (t) => {
  const runtime = await Runtime.open(t);
  const { code, said, err } = await runtime.program(`${prelude}
    const session = await sdk.createSession({ agent: "mock", cwd: process.env.HOME });
    session.prompt([{ type: "text", text: "crash" }]);
    say(await failure);
    process.exit();
  `);
  assert.equal(code, 0, err);
  const [{ name, status, message, problem }] = said;
  assert.equal(status, 502);
  assert.equal(message, problem.title);
  assert.equal(name, "AcpHttpError");
  const [{ serverId, status: phase, exitCode }] = await runtime.instances();
  assert.deepEqual([phase, exitCode], ["exited", 3]);
  assert.equal(problem.type, "urn:sandbox-agent:error:agent_process_exited");
  assert.match(problem.detail, /^agent process exited: /);
  assert.equal(problem.agent, "mock");
  assert.equal(problem.sessionId, serverId);
  assert.equal(problem.details.exitCode, 3);
  assert.match(problem.details.stderrTail, /demo-agent: fatal: the prompt asked for a crash\n/);

  const log = await runtime.logOf(serverId, (message) => message.method === "_adapter/agent_exited");
  assert.deepEqual(log.map(({ id }) => id), log.map((_, index) => index + 1));
  assert.equal(textOf(log.map(({ message }) => message)), "I am about to finish this senten");
  assert.deepEqual(log.map(({ message }) => kindOf(message)), [
    "result", "result", "available_commands_update", "session_info_update", "tool_call", ...log.slice(5, -1).map(() => "agent_message_chunk"),
    "_adapter/agent_exited",
  ]);
  const { success, code: exited, stderrTail } = log.at(-1).message.params;
  assert.deepEqual([success, exited], [false, 3]);
  assert.equal(stderrTail, problem.details.stderrTail);

  // The server is as well as before.
  const sdk = await runtime.connect();
  const session = await sdk.createSession({ agent: "mock", cwd: runtime.work });
  assert.equal((await turn(session, "echo")).response.stopReason, "end_turn");
});

test("an agent that does not exist fails the first POST before anything is started", async (t) => {
  const runtime = await Runtime.open(t);
  const { code, said, err } = await runtime.program(`${prelude}
    sdk.createSession({ agent: "nope" });
    say(await failure);
    process.exit();
  `);
  assert.equal(code, 0, err);
  const [{ status, problem }] = said;
  assert.equal(status, 400);
  assert.deepEqual(problem, {
    type: "urn:sandbox-agent:error:unsupported_agent", title: problem.title, status: 400, detail: "unsupported agent: nope", agent: "nope",
  });
  assert.deepEqual(await runtime.instances(), []);
});

test("an agent that cannot be started fails the first POST with the reason, one that ends at once with its last words", async (t) => {
  const runtime = Runtime.make(t);
  const command = runtime.script("ends", "#!/bin/sh\necho 'no configuration found' >&2\nexit 7\n");
  runtime.agents([
    { id: "ends", name: "Ends", command, args: [], env: {} }, { id: "missing", name: "Missing", command: `${command}-not`, args: [], env: {} },
  ]);
  await runtime.start();
  const first = async (agent) => {
    const { code, said, err } = await runtime.program(`${prelude}
      sdk.createSession({ agent: ${JSON.stringify(agent)}, cwd: process.env.HOME });
      say(await failure);
      process.exit();
    `);
    assert.equal(code, 0, err);
    return said[0];
  };
  const ends = await first("ends");
  assert.deepEqual([ends.status, ends.problem.type, ends.problem.details], [
    502, "urn:sandbox-agent:error:agent_process_exited", { exitCode: 7, stderrTail: "no configuration found\n" },
  ]);
  const missing = await first("missing");
  assert.deepEqual([missing.status, missing.problem.type], [502, "urn:sandbox-agent:error:stream_error"]);
  assert.match(missing.problem.detail, /ends-not does not exist/);
});

test("a program that does not look for the failure ends by it, and says the problem", async (t) => {
  const runtime = await Runtime.open(t);
  const { code, err } = await runtime.program(`
    import { SandboxAgent } from "sandbox-agent";
    const sdk = await SandboxAgent.connect({ baseUrl: process.env.URL, token: process.env.TOKEN });
    const session = await sdk.createSession({ agent: "mock", cwd: process.env.HOME });
    await session.prompt([{ type: "text", text: "crash" }]);
  `);
  assert.equal(code, 1);
  assert.match(err, /ACP write error: AcpHttpError/);
  assert.match(err, /agent process exited: /);
});

test("a server that is stopped in mid-turn ends the stream and its agents, and the client can be disposed", async (t) => {
  const runtime = await Runtime.open(t);
  const program = runtime.program(`${prelude}
    const session = await sdk.createSession({ agent: "mock", cwd: process.env.HOME });
    let ticks = 0;
    session.onEvent(({ payload }) => {
      const chunk = payload.params?.update?.sessionUpdate === "agent_message_chunk";
      if (chunk && ++ticks === 2) process.kill(${runtime.server.pid}, "SIGTERM");
    });
    session.prompt([{ type: "text", text: "slow" }]);
    say(await failure);
    await sdk.dispose();
    say("disposed");
    process.exit();
  `);
  const before = performance.now();
  assert.deepEqual(await runtime.ended, { code: 0, signal: null }, runtime.log);
  runtime.server = undefined;
  const { said, code, err } = await program;
  assert.equal(code, 0, err);
  assert.ok(performance.now() - before < 10_000);
  assert.equal(said[0].status, 502, JSON.stringify(said[0]));
  assert.equal(said[0].problem.type, "urn:sandbox-agent:error:stream_error");
  assert.equal(said[1], "disposed");
  await runtime.gone();
});
