// Permissions: what the SDK shows of one, and what the agent does with each answer.
import assert from "node:assert/strict";
import fs from "node:fs";
import path from "node:path";
import { test } from "node:test";
import { blocks, kindOf, Runtime, turn } from "./runtime.mjs";

const demoFile = "deskhand-demo.md";

/** A session on the demo agent, and the permissions that it asks for, each answered as told. */
async function asked(t, answer) {
  const runtime = await Runtime.open(t);
  const sdk = await runtime.connect();
  const session = await sdk.createSession({ id: "asks", agent: "mock", cwd: runtime.work });
  const requests = [];
  if (answer) {
    session.onPermissionRequest((request) => {
      requests.push(request);
      answer(session, request);
    });
  }
  const edits = () => {
    const file = path.join(runtime.work, demoFile);
    return fs.existsSync(file) ? Number(/Edits so far: (\d+)/.exec(fs.readFileSync(file, "utf8"))[1]) : 0;
  };
  return { sdk, session, requests, edits };
}

test("a permission is shown whole, and answered once it counts once", async (t) => {
  const { sdk, session, requests, edits } = await asked(t, (session, { id }) => session.respondPermission(id, "once"));
  const { response, text, messages } = await turn(session, "permission");
  assert.equal(response.stopReason, "end_turn");
  assert.equal(text, "The edit is written. You allowed it once.");
  assert.equal(edits(), 1);

  assert.equal(requests.length, 1);
  const [{ id, createdAt, rawRequest, toolCall, ...rest }] = requests;
  assert.match(id, /^[0-9a-f-]{36}$/);
  assert.ok(createdAt > 0);
  assert.deepEqual(rest, {
    sessionId: "asks", agentSessionId: session.agentSessionId, availableReplies: ["once", "always", "reject"],
    options: [
      { optionId: "allow-once", name: "Allow once", kind: "allow_once" },
      { optionId: "allow-always", name: "Allow for this session", kind: "allow_always" },
      { optionId: "reject-once", name: "Reject", kind: "reject_once" },
    ],
  });
  assert.equal(toolCall.title, `Edit ${demoFile}`);
  assert.equal(toolCall.kind, "edit");
  assert.deepEqual(rawRequest, { sessionId: session.agentSessionId, toolCall, options: rest.options });
  // The answer to the agent is a POST like any other: its tool call goes on where it was asked.
  const kinds = messages.map(kindOf);
  const at = kinds.indexOf("session/request_permission");
  assert.equal(kinds.filter((kind) => kind === "session/request_permission").length, 1);
  assert.ok(kinds.indexOf("tool_call") < at && at < kinds.indexOf("tool_call_update"), `${kinds}`);

  await assert.rejects(sdk.respondPermission(id, "once"), { message: `permission '${id}' not found` });
  await turn(session, "permission");
  assert.equal(requests.length, 2);
  assert.equal(edits(), 2);
});

test("a permission answered always is not asked for again", async (t) => {
  const { session, requests, edits } = await asked(t, (session, { id }) => session.respondPermission(id, "always"));
  assert.equal((await turn(session, "permission")).text, "The edit is written. You allowed it and every other edit of this session.");
  assert.equal((await turn(session, "permission")).text, "The edit is written. You had allowed every edit of this session, so I did not ask.");
  assert.equal(requests.length, 1);
  assert.equal(edits(), 2);
});

test("a permission that is rejected changes nothing", async (t) => {
  const { session, requests, edits } = await asked(t, (session, { id }) => session.respondPermission(id, "reject"));
  const { response, text } = await turn(session, "permission");
  assert.equal(response.stopReason, "end_turn");
  assert.equal(text, "**Nothing was changed.** The edit was rejected.");
  assert.equal(requests.length, 1);
  assert.equal(edits(), 0);
});

test("without a listener a permission is dismissed at once", async (t) => {
  const { session, edits } = await asked(t);
  const { response, text } = await turn(session, "permission");
  assert.equal(response.stopReason, "end_turn");
  assert.equal(text, "**Nothing was changed.** The request was dismissed.");
  assert.equal(edits(), 0);
});

test("an answer of the caller's own reaches the agent as it is", async (t) => {
  const { session, edits } = await asked(t, (session, { id }) => {
    session.rawRespondPermission(id, { outcome: { outcome: "selected", optionId: "none of these" } });
  });
  assert.equal((await turn(session, "permission")).text, "**Nothing was changed.** The answer is none of the options that I offered.");
  assert.equal(edits(), 0);
});

test("destroySession dismisses the permission that waits, and the turn ends as cancelled", async (t) => {
  let destroyed;
  const { sdk, session, edits } = await asked(t, () => (destroyed = sdk.destroySession("asks")));
  assert.equal((await session.prompt(blocks("permission"))).stopReason, "cancelled");
  assert.ok((await destroyed).destroyedAt > 0);
  assert.equal(edits(), 0);
});
