// How a client gets in: health and tokens.
import assert from "node:assert/strict";
import fs from "node:fs";
import path from "node:path";
import { test } from "node:test";
import { problem, Runtime, token } from "./runtime.mjs";

const invalid = problem(401, "token_invalid");

test("a client with the token hears that all is well", async (t) => {
  const runtime = await Runtime.open(t);
  const sdk = await runtime.connect();
  assert.deepEqual(await sdk.getHealth(), { status: "ok" });
  assert.deepEqual(await sdk.listAcpServers(), { servers: [] });
});

test("without a token of the caller's choice the data directory's is the one", async (t) => {
  const runtime = Runtime.make(t);
  runtime.flags = [];
  await runtime.start();
  const made = fs.readFileSync(path.join(runtime.data, "deskhand", "token"), "utf8").trim();
  const sdk = await runtime.connect({ token: made });
  assert.deepEqual(await sdk.listAcpServers(), { servers: [] });
  const stranger = await runtime.connect({ skipHealthCheck: true });
  await assert.rejects(stranger.listAcpServers(), invalid);
});

test("a wrong token and none are refused, and the reason reaches the caller", async (t) => {
  const runtime = await Runtime.open(t);
  for (const wrong of ["wrong", `${token}0`, undefined]) {
    const sdk = await runtime.connect({ token: wrong, skipHealthCheck: true });
    await assert.rejects(sdk.getHealth(), invalid);
    await assert.rejects(sdk.listAcpServers(), invalid);
  }
  // By default the SDK waits for health before all it does, here not for ever.
  const sdk = await runtime.connect({ token: "wrong", waitForHealth: { timeoutMs: 300 } });
  await assert.rejects(sdk.listAcpServers(), /^Error: Timed out waiting for sandbox-agent health after 300ms \(token invalid\)$/i);
});

test("a server without a token takes clients with and without one", async (t) => {
  const runtime = Runtime.make(t);
  runtime.flags = ["--no-token"];
  await runtime.start();
  for (const given of [undefined, "anything"]) {
    const sdk = await runtime.connect({ token: given });
    assert.deepEqual(await sdk.listAcpServers(), { servers: [] });
  }
});

test("who guesses tokens is slowed down, and the right one still passes", async (t) => {
  const runtime = await Runtime.open(t);
  const guesser = await runtime.connect({ token: "guess", skipHealthCheck: true });
  for (let guess = 0; guess < 10; guess++) await assert.rejects(guesser.getHealth(), invalid);
  await assert.rejects(guesser.getHealth(), (error) => {
    assert.match(error.response.headers.get("retry-after"), /^[1-9]\d*$/);
    return problem(429, "too_many_requests")(error);
  });
  const sdk = await runtime.connect();
  assert.deepEqual(await sdk.getHealth(), { status: "ok" });
});

test("a client that was there first waits for the server", async (t) => {
  const runtime = await Runtime.open(t);
  const { port } = new URL(runtime.url);
  await runtime.stop();
  const sdk = await runtime.connect();
  const list = sdk.listAcpServers();
  await runtime.start(Number(port));
  assert.deepEqual(await list, { servers: [] });
});

test("what the runtime does not have is a problem with status 404", async (t) => {
  const runtime = await Runtime.open(t);
  const sdk = await runtime.connect();
  for (const call of [() => sdk.listProcesses(), () => sdk.getDesktopStatus()]) {
    await assert.rejects(call(), problem(404, "not_found"));
  }
});
