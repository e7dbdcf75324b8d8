// The SDK's helpers for MCP servers and skills of a directory.
import assert from "node:assert/strict";
import fs from "node:fs";
import path from "node:path";
import { test } from "node:test";
import { problem, Runtime } from "./runtime.mjs";

test("MCP servers go in and come out, and are gone after delete", async (t) => {
  const runtime = await Runtime.open(t);
  const sdk = await runtime.connect();
  const entries = {
    files: {
      type: "local", command: "npx", args: ["-y", "server-filesystem", "/data"], env: { KEY: "välue", EMPTY: "" }, cwd: "/data", enabled: false,
      timeoutMs: 5000,
    },
    bare: { type: "local", command: "mcp", args: [] },
    far: {
      type: "remote", url: "https://example.com/mcp?a=1", headers: { "X-Key": "v" }, bearerTokenEnvVar: "TOKEN", envHeaders: { "X-Env": "VAR" },
      oauth: { clientId: "id", scope: "a b" }, enabled: true, timeoutMs: 1, transport: "sse",
    },
    "Näme / with & all": { type: "remote", url: "http://localhost:1/mcp" },
  };
  for (const [mcpName, entry] of Object.entries(entries)) {
    const query = { directory: runtime.work, mcpName };
    await assert.rejects(sdk.getMcpConfig(query), problem(404, "not_found"));
    assert.equal(await sdk.setMcpConfig(query, entry), undefined);
    assert.deepEqual(await sdk.getMcpConfig(query), entry);
  }
  const file = path.join(runtime.work, ".sandbox-agent", "config", "mcp.json");
  assert.deepEqual(Object.keys(JSON.parse(fs.readFileSync(file, "utf8"))), Object.keys(entries).sort());
  assert.equal(fs.statSync(file).mode & 0o777, 0o600);

  const query = { directory: runtime.work, mcpName: "files" };
  const changed = { type: "local", command: "other", args: [] };
  await sdk.setMcpConfig(query, changed);
  assert.deepEqual(await sdk.getMcpConfig(query), changed);
  for (let time = 0; time < 2; time++) {
    assert.equal(await sdk.deleteMcpConfig(query), undefined);
    await assert.rejects(sdk.getMcpConfig(query), problem(404, "not_found"));
  }
  assert.deepEqual(await sdk.getMcpConfig({ directory: runtime.work, mcpName: "bare" }), entries.bare);
});

test("an MCP server is read back in its canonical form, with what is unknown kept", async (t) => {
  const runtime = await Runtime.open(t);
  const sdk = await runtime.connect();
  const forms = [
    [
      { type: "stdio", command: "npx", environment: { A: "1" }, timeout: 5 },
      { type: "local", command: "npx", args: [], env: { A: "1" }, timeoutMs: 5 },
    ], [
      { type: "local", command: ["npx", "-y"], custom: { deep: [1, null] } },
      { type: "local", command: ["npx", "-y"], args: [], custom: { deep: [1, null] } },
    ], [
      { type: "http", url: "http://x", envHttpHeaders: { A: "B" }, oauth: false },
      { type: "remote", url: "http://x", envHeaders: { A: "B" }, oauth: false },
    ],
  ];
  for (const [put, canonical] of forms) {
    const query = { directory: runtime.work, mcpName: "one" };
    await sdk.setMcpConfig(query, put);
    const { transport, ...read } = await sdk.getMcpConfig(query);
    assert.deepEqual(read, canonical);
    assert.ok(transport === undefined || transport === put.type, transport); // "http" as a type may be kept as the transport
  }
});

test("skills go in and come out, and are gone after delete", async (t) => {
  const runtime = await Runtime.open(t);
  const sdk = await runtime.connect();
  const entry = {
    sources: [
      { type: "github", source: "owner/repo", skills: ["one", "zwei"], ref: "main", subpath: "skills" },
      { type: "git", source: "https://example.com/x.git" }, { type: "local", source: "/data/skills" },
    ],
  };
  const query = { directory: runtime.work, skillName: "Näme 漢" };
  await assert.rejects(sdk.getSkillsConfig(query), problem(404, "not_found"));
  assert.equal(await sdk.setSkillsConfig(query, entry), undefined);
  assert.deepEqual(await sdk.getSkillsConfig(query), entry);
  assert.deepEqual(JSON.parse(fs.readFileSync(path.join(runtime.work, ".sandbox-agent", "config", "skills.json"), "utf8")), { "Näme 漢": entry });
  for (let time = 0; time < 2; time++) {
    assert.equal(await sdk.deleteSkillsConfig(query), undefined);
    await assert.rejects(sdk.getSkillsConfig(query), problem(404, "not_found"));
  }
});

test("entries of one directory are not those of another, and what is wrong is refused", async (t) => {
  const runtime = await Runtime.open(t);
  const sdk = await runtime.connect();
  const other = path.join(runtime.home, "other");
  fs.mkdirSync(other);
  const entry = { type: "local", command: "mcp", args: [] };
  await sdk.setMcpConfig({ directory: runtime.work, mcpName: "one" }, entry);
  await assert.rejects(sdk.getMcpConfig({ directory: other, mcpName: "one" }), problem(404, "not_found"));

  const invalid = problem(400, "invalid_request");
  for (const wrong of [{ type: "local" }, { type: "remote" }, { type: "nope", command: "x" }, "text", []]) {
    await assert.rejects(sdk.setMcpConfig({ directory: runtime.work, mcpName: "wrong" }, wrong), invalid);
  }
  for (const wrong of [{}, { sources: "text" }, { sources: [{ type: "nope", source: "x" }] }, { sources: [{ type: "git" }] }]) {
    await assert.rejects(sdk.setSkillsConfig({ directory: runtime.work, skillName: "wrong" }, wrong), invalid);
  }
  await assert.rejects(sdk.getMcpConfig({ directory: runtime.work }), invalid);
  await assert.rejects(sdk.getMcpConfig({ mcpName: "one" }), invalid);
  await assert.rejects(sdk.getMcpConfig({ directory: "/etc", mcpName: "one" }), problem(403, "permission_denied"));

  const file = path.join(runtime.work, ".sandbox-agent", "config", "mcp.json");
  fs.writeFileSync(file, "{ broken");
  await assert.rejects(sdk.getMcpConfig({ directory: runtime.work, mcpName: "one" }), problem(409, "conflict"));
  await assert.rejects(sdk.setMcpConfig({ directory: runtime.work, mcpName: "one" }, entry), problem(409, "conflict"));
  assert.equal(fs.readFileSync(file, "utf8"), "{ broken");
});

test("twenty changes at once are all kept", async (t) => {
  const runtime = await Runtime.open(t);
  const clients = [await runtime.connect(), await runtime.connect()];
  const many = Array.from({ length: 20 }, (_, index) => `server-${index}`);
  await Promise.all(many.map((mcpName, index) => {
    return clients[index % 2].setMcpConfig({ directory: runtime.work, mcpName }, { type: "local", command: mcpName, args: [] });
  }));
  const kept = JSON.parse(fs.readFileSync(path.join(runtime.work, ".sandbox-agent", "config", "mcp.json"), "utf8"));
  assert.deepEqual(Object.keys(kept).sort(), [...many].sort());
});
