// MCP servers, skills and repositories as they are found on people's disks: each test is a public report, reduced.
import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import fs from "node:fs";
import path from "node:path";
import { test } from "node:test";
import { Desk } from "../browser/desk.mjs";
import { agent, noted } from "./scripted.mjs";

/** A directory with MCP servers of its own, all approved, and an agent that notes those that it is given. */
async function given(t, servers, env = {}) {
  const desk = Desk.make(t, { env });
  desk.agents([agent(desk, (agent) => ({
    initialize: (message) => agent.answer(message, { protocolVersion: 1, agentCapabilities: { mcpCapabilities: { http: true, sse: true } }, authMethods: [] }),
    "session/new"(message) {
      agent.note("servers", message.params.mcpServers);
      agent.answer(message, { sessionId: agent.session });
    },
  }))]);
  fs.mkdirSync(path.join(desk.work, ".sandbox-agent/config"), { recursive: true });
  fs.writeFileSync(path.join(desk.work, ".sandbox-agent/config/mcp.json"), JSON.stringify(servers));
  const approved = await desk.command(["trust", "approve", "--all", "--dir", desk.work]);
  assert.equal(approved.code, 0, approved.err);
  const turn = await desk.command(["prompt", "--agent", "scripted", "--dir", desk.work, "go"]);
  assert.equal(turn.code, 0, turn.err);
  return { servers: noted(desk, "servers")[0], said: turn.err + turn.out };
}

test("a server that is disabled is given to no agent", async (t) => {
  const { servers } = await given(t, { off: { type: "stdio", command: "true", disabled: true }, on: { type: "stdio", command: "true" } });
  const names = servers.map(({ name }) => name);
  assert.ok(names.includes("on") && !names.includes("off"), `the agent was given ${names}`);
});

test("variables of a server's entry are filled in when the agent starts", async (t) => {
  const { servers } = await given(t, {
    issues: { type: "http", url: "http://127.0.0.1:9/mcp", headers: { Authorization: "Bearer ${ISSUES_TOKEN}" } },
    notes: { type: "stdio", command: "true", args: ["${NOTES_DIR:-docs}"], env: { KEY: "${ISSUES_TOKEN}" } },
  }, { ISSUES_TOKEN: "sesame-42" });
  const server = (name) => servers.find((server) => server.name === name);
  assert.deepEqual(server("issues").headers, [{ name: "Authorization", value: "Bearer sesame-42" }]);
  assert.deepEqual(server("notes").args, ["docs"]);
  assert.ok(server("notes").env.some(({ name, value }) => name === "KEY" && value === "sesame-42"), JSON.stringify(server("notes")));
});

test("a variable that is not set is told, and not sent as its own name", async (t) => {
  const { servers, said } = await given(t, { issues: { type: "http", url: "http://127.0.0.1:9/mcp", headers: { Authorization: "Bearer ${ISSUES_TOKEN}" } } });
  assert.ok(!JSON.stringify(servers).includes("${ISSUES_TOKEN}"), JSON.stringify(servers));
  assert.match(said, /ISSUES_TOKEN/);
});

test("skills reach the agent under the names of their folders", async (t) => {
  const skills = {
    "using-git-worktrees": "---\nname: Using Git Worktrees\ndescription: x\n---\nbody\n",
    "code-review-zh": "---\nname: 代码审查\ndescription: 审查代码\n---\n",
    übersetzen: "---\nname: übersetzen\ndescription: x\n---\n",
    bom: "\ufeff---\nname: bom\ndescription: x\n---\n",
    crlf: "---\r\nname: crlf\r\ndescription: x\r\n---\r\n",
    folded: "---\nname: folded\ndescription: >-\n  a\n  b\n---\n",
    colon: "---\nname: colon\ndescription: Use when: the user asks. Triggers on: x\n---\n",
    noname: "---\ndescription: x\n---\n",
    nofront: "# Heading\n",
  };
  const desk = Desk.make(t);
  const claude = agent(desk, (agent) => ({
    async "session/prompt"(message) {
      const fs = await import("node:fs");
      const folder = ".claude/skills";
      agent.note("linked", fs.existsSync(folder) ? fs.readdirSync(folder).filter((name) => fs.existsSync(`${folder}/${name}/SKILL.md`)).sort() : []);
      agent.answer(message, { stopReason: "end_turn" });
    },
  }), { id: "claude", override: true });
  desk.agents([claude]);
  for (const [name, text] of Object.entries(skills)) {
    fs.mkdirSync(path.join(desk.work, "tools/skills", name), { recursive: true });
    fs.writeFileSync(path.join(desk.work, "tools/skills", name, "SKILL.md"), text);
  }
  await desk.start();
  await desk.api("PUT", `/client/config/skills?directory=${encodeURIComponent(desk.work)}&name=docs`, { sources: [{ type: "local", source: "tools/skills" }] });
  const turn = await desk.command(["prompt", "--agent", "claude", "--dir", desk.work, "go"]);
  assert.equal(turn.code, 0, turn.err);
  assert.deepEqual(noted(desk, "linked")[0], Object.keys(skills).sort());
});

test("a worktree whose filter is not installed names the filter's program", async (t) => {
  const desk = Desk.make(t, { agents: [] });
  desk.agents([agent(desk, () => ({}))]);
  const git = (...args) => execFileSync("git", ["-c", "user.name=You", "-c", "user.email=you@example.org", ...args], { cwd: desk.work, env: desk.env });
  git("init", "-q", "-b", "main");
  fs.writeFileSync(path.join(desk.work, ".gitattributes"), "*.bin filter=big -text\n");
  fs.writeFileSync(path.join(desk.work, "m.bin"), "a pointer\n");
  git("add", ".");
  git("commit", "-q", "-m", "one");
  git("config", "--global", "filter.big.smudge", "git-absent smudge -- %f");
  git("config", "--global", "filter.big.process", "git-absent filter-process");
  git("config", "--global", "filter.big.required", "true");
  await desk.start();
  const { status, data } = await desk.call("POST", "/client/sessions", { agent: "scripted", cwd: desk.work, worktree: true });
  assert.equal(status, 409, JSON.stringify(data));
  assert.deepEqual([data.code, data.params.program], ["worktree.filter_missing", "git-absent"]);
});
