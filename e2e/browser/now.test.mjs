// What a conversation does now, and the ways on when a turn ends badly, in Chromium.
import assert from "node:assert/strict";
import { test } from "node:test";
import { App } from "./app.mjs";
import { Desk, shoot, until } from "./desk.mjs";

/** An agent that does what its prompt names, and writes down what it was told. */
const agent = `#!/usr/bin/env node
const told = [];
let turn;
require("readline").createInterface({ input: process.stdin }).on("line", (line) => {
  const { id, method, params } = JSON.parse(line);
  const send = (message) => console.log(JSON.stringify({ jsonrpc: "2.0", ...message }));
  const update = (update) => send({ method: "session/update", params: { sessionId: "one", update } });
  const say = (text) => update({ sessionUpdate: "agent_message_chunk", content: { type: "text", text } });
  const end = (stopReason = "end_turn") => send({ id: turn, result: { stopReason } });
  if (method === "initialize") send({ id, result: { protocolVersion: 1 } });
  if (method === "session/new") send({ id, result: { sessionId: "one" } });
  if (method === "session/cancel") end("cancelled");
  if (method !== "session/prompt") return;
  turn = id;
  const text = params.prompt[0].text;
  told.push(text);
  if (text === "work") {
    update({ sessionUpdate: "tool_call", toolCallId: "t" + id, title: "Run", kind: "execute", status: "in_progress", rawInput: { command: "go test ./..." } });
  } else if (text === "limit") {
    if (told.filter((one) => one === "limit").length > 1) { say("the second time it worked"); end(); }
    else send({ id, error: { code: -32603, message: "Internal error", data: { details: "You have hit your usage limit. Try again at 2:30 PM." } } });
  } else if (text === "long") { say("half of it"); end("max_tokens"); }
  else if (text === "think") update({ sessionUpdate: "agent_thought_chunk", content: { type: "text", text: "hm" } });
  else { say("told: " + told.join(", ")); end(); }
});
`;

async function opened(t) {
  const desk = await Desk.open(t);
  desk.agents([{ id: "worker", name: "Worker", command: desk.script("worker.js", agent) }]);
  return { desk, app: await App.open(desk, { agent: "Worker" }) };
}

async function picture(app, name) {
  for (const colorScheme of ["light", "dark"]) {
    await app.page.emulateMedia({ colorScheme });
    await shoot(app.page, `${name}-${colorScheme}`);
  }
}

const doing = (app) => app.page.getByTestId("working");

test("the last row says what the agent does, and for how long, until the turn ends", async (t) => {
  const { app } = await opened(t);
  assert.equal(await doing(app).count(), 0, "nothing runs");
  await app.send("work");
  await doing(app).getByText("Running go test ./...").waitFor();
  assert.match(await app.page.getByTestId("elapsed").innerText(), /^\d\d:\d\d$/);
  await picture(app, "working");
  await app.button("Stop").click();
  await app.footers.getByText("Stopped", { exact: true }).waitFor();
  await doing(app).waitFor({ state: "detached" });
  await app.send("think");
  await doing(app).getByText("Thinking").waitFor();
  await app.button("Stop").click();
  await doing(app).waitFor({ state: "detached" });
});

test("a server that is gone stops the clock, and is told in the middle", async (t) => {
  const { desk, app } = await opened(t);
  await app.send("work");
  await doing(app).getByText("Running go test ./...").waitFor();
  desk.server.kill("SIGSTOP");
  try {
    await doing(app).getByText("Deskhand is not answering").waitFor();
    const shown = await app.page.getByTestId("elapsed").innerText();
    assert.ok(await app.button("Stop").isDisabled(), "nothing can be stopped now");
    await picture(app, "server-gone");
    await app.page.evaluate(() => new Promise((done) => setTimeout(done, 1_100))); // a clock that goes would have gone on
    assert.equal(await app.page.getByTestId("elapsed").innerText(), shown);
  } finally {
    desk.server.kill("SIGCONT");
  }
  await app.page.getByRole("button", { name: /now/i }).first().click().catch(() => {});
  await doing(app).getByText("Running go test ./...").waitFor();
  await app.button("Stop").click();
});

test("a failed turn has its cause, its kind, and is sent again by one click", async (t) => {
  const { app } = await opened(t);
  await app.turn("limit", "Failed");
  const failure = app.page.getByTestId("failure");
  await failure.getByText("Limit reached").waitFor();
  await failure.getByText("You have hit your usage limit. Try again at 2:30 PM.").waitFor();
  assert.equal(await failure.getAttribute("data-kind"), "rate_limit");
  await picture(app, "failure");
  await app.button("Retry", app.log).click();
  await app.log.getByText("the second time it worked").waitFor();
  assert.equal(await app.button("Retry", app.log).count(), 0, "only the last turn has ways on");
});

test("a turn that was stopped, or ended at a limit, goes on by one click", async (t) => {
  const { app } = await opened(t);
  await app.turn("long", "Ended at the token limit");
  await app.button("Continue", app.log).click();
  await app.log.getByText("told: long, Continue.").waitFor();
  assert.equal(await app.button("Continue", app.log).count(), 0);
});

test("the last message of one's own is copied, or sent again", async (t) => {
  const { app } = await opened(t);
  await app.turn("hello");
  const message = app.log.getByRole("article", { name: "You" }).or(app.log.locator("[data-prompt]")).first();
  await message.hover();
  await picture(app, "own-message");
  await message.getByRole("button", { name: "Send the message again" }).click();
  await app.log.getByText("told: hello, hello").waitFor();
  await until("one message to send again", async () => (await app.log.getByRole("button", { name: "Send the message again" }).count()) === 1);
  await message.getByRole("button", { name: "Copy the message" }).waitFor();
});
