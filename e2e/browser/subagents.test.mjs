// Subagents: child sessions that an agent begins are conversations below its own, and one of them is stopped while the others go on.
import assert from "node:assert/strict";
import { test } from "node:test";
import { App, Looks } from "./app.mjs";
import { Desk, testAgents, until } from "./desk.mjs";

test("subagents are conversations of their own: in the list, asking, stopped alone, read after a kill", async (t) => {
  const desk = await Desk.open(t);
  desk.agents([{ id: "lead", name: "Lead", command: testAgents(), args: ["delegating-agent"] }]);
  const app = await App.open(desk, { agent: "Lead", viewport: { width: 1440, height: 900 } });
  const looks = new Looks();
  const list = app.page.getByRole("tree", { name: "Conversations" });
  const row = (name) => list.getByRole("treeitem", { name });
  await app.send("delegate");

  // Both stand in the transcript and in the list, and one asks.
  const reader = app.log.getByRole("group", { name: "Subagent Reader" });
  const writer = app.log.getByRole("group", { name: "Subagent Writer" });
  await reader.getByText("Reads the totals").or(reader.getByText("go test")).first().waitFor();
  await writer.waitFor();
  await row(/^Reader, waiting for you/).waitFor();
  await row(/^Writer, /).waitFor();
  await app.log.getByRole("group", { name: "To Reader" }).getByText("Read the totals of orders.go.").waitFor();
  await looks.at(app.page, "subagents");

  // The inbox says whose subagent asks; the answer is given in the subagent's own conversation.
  await app.page.getByRole("button", { name: /^Inbox/ }).click();
  await app.page.getByText("Subagent of delegate").first().waitFor();
  await looks.at(app.page, "subagents-inbox");
  await row(/^Reader, waiting for you/).click();
  await app.log.getByText("I read the totals.").waitFor();
  await app.page.getByRole("button", { name: "Subagent of delegate" }).waitFor();
  assert.equal(await app.composer.count(), 0, "only the agent prompts a subagent");
  await looks.at(app.page, "subagent-asks");
  await app.button("Allow").click();
  await app.log.getByText("The totals are right.").first().waitFor();

  // One is stopped, and the lead goes on until then.
  await app.page.getByRole("button", { name: "Go to the conversation" }).click();
  await writer.getByRole("button", { name: "Stop Writer" }).click();
  await app.log.getByText("Both are done.").waitFor();
  await app.button(/^Check the totals|Check the totals/, app.log).first().click();
  await app.log.getByRole("button", { name: "Subagent Reader" }).waitFor();
  await looks.at(app.page, "subagents-done");

  // At rest they are folded; they unfold, and survive the program.
  await until("no subagent is listed", async () => (await row(/^Reader/).count()) === 0);
  await list.getByRole("button", { name: "Show 2 subagents" }).click();
  await row(/^Writer/).click();
  await app.log.getByText(/word 1 /).waitFor();

  // A kill of the program in the middle: both are told as interrupted, and all that they said is there.
  await row(/^delegate/).click();
  await app.send("delegate");
  await row(/^Reader, waiting for you/).waitFor();
  await desk.kill();
  await desk.start();
  await app.page.goto(desk.link);
  await row(/^delegate/).click();
  await list.getByRole("button", { name: "Show 2 subagents" }).click();
  await row(/^Reader/).click();
  await app.log.getByText("I read the totals.").first().waitFor();
  await app.log.getByText("Interrupted").first().waitFor();
  looks.done();
});
