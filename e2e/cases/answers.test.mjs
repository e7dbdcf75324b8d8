// Who answers for a person, and who must not: each test is a public report, reduced.
import assert from "node:assert/strict";
import { test } from "node:test";
import { Desk, until } from "../browser/desk.mjs";
import { agent, noted } from "./scripted.mjs";

/** An agent that asks for one permission and notes the answer. */
const asking = (place, toolCall, options) => agent(place, (agent, { toolCall, options }) => ({
  async "session/prompt"(message) {
    agent.note("answer", (await agent.ask("session/request_permission", { toolCall, options })).result);
    agent.answer(message, { stopReason: "end_turn" });
  },
}), { data: { toolCall, options } });
const option = (optionId, kind, name = optionId) => ({ optionId, kind, name });

test("--approve once leaves a choice between four answers to the person", async (t) => {
  const desk = Desk.make(t);
  const options = ["Alpha", "Bravo", "Charlie", "Delta"].map((name) => option(name, "allow_once"));
  desk.agents([asking(desk, { toolCallId: "q", title: "Which database?", kind: "other", status: "pending" }, options)]);
  const { code } = await desk.command(["prompt", "--agent", "scripted", "--dir", desk.work, "--approve", "once", "go"]);
  assert.equal(code, 5);
  for (const answer of noted(desk, "answer")) assert.deepEqual(answer, { outcome: { outcome: "cancelled" } });
});

test("--approve once gives no leave for ever", async (t) => {
  const desk = Desk.make(t);
  desk.agents([asking(desk, { toolCallId: "c", title: "rm -r build", kind: "execute" }, [option("ever", "allow_always"), option("no", "reject_once")])]);
  const { err } = await desk.command(["prompt", "--agent", "scripted", "--dir", desk.work, "--approve", "once", "go"]);
  for (const answer of noted(desk, "answer")) assert.notEqual(answer.outcome.optionId, "ever", err);
});

test("the rule for git commit covers a message in a quoted heredoc", async (t) => {
  const command = `git commit -m "$(cat <<'EOF'\nFix the light\n\nIt was off; now on && green.\nEOF\n)"`;
  const desk = Desk.make(t);
  desk.agents([asking(desk, { toolCallId: "c", title: command, kind: "execute", rawInput: { command } }, [option("yes", "allow_once"), option("no", "reject_once")])]);
  await desk.start();
  await desk.api("POST", "/client/rules", { effect: "allow", scope: "everywhere", kind: "execute", pattern: "git commit *" });
  const { id } = await desk.api("POST", "/client/sessions", { agent: "scripted", cwd: desk.work });
  await desk.api("POST", `/client/sessions/${id}/prompt`, { message: "go", when: "now" });
  const answer = await until("the rule's answer", async () => noted(desk, "answer")[0] ?? (await desk.api("GET", "/client/inbox")).items[0]);
  assert.deepEqual(answer, { outcome: { outcome: "selected", optionId: "yes" } });
});
