// Plans that an agent names: a checklist and a document, each where the agent was at work on it, and one that the agent has dismissed.
import assert from "node:assert/strict";
import { test } from "node:test";
import { App, Looks } from "./app.mjs";
import { Desk } from "./desk.mjs";

test("a plan is a checklist or a document, and a dismissed one is folded", async (t) => {
  const desk = await Desk.open(t);
  const app = await App.open(desk, { viewport: { width: 1440, height: 900 } });
  const looks = new Looks();
  await app.begin("Demo agent", desk.work);
  await app.turn("two plans, please");
  const plans = app.log.getByRole("group", { name: "Plan" });
  assert.equal(await plans.count(), 2);
  const [steps, text] = [plans.first(), plans.last()];
  await text.getByRole("heading", { name: "Round the totals" }).waitFor();
  await text.getByRole("button", { name: "plan.md" }).or(text.getByRole("link", { name: "plan.md" })).first().waitFor();
  await steps.getByText("Dismissed by the agent").waitFor();
  assert.equal(await steps.getByText("Round them").count(), 0);
  await steps.getByRole("button", { name: "Show" }).click();
  await steps.getByText("Round them").waitFor();
  await looks.at(app.page, "plans");

  // The side panel has those that count, and the conversation after a restart is the same.
  const panel = app.page.getByRole("complementary", { name: "Side panel" });
  await app.button("Side panel").click();
  await panel.getByRole("tab", { name: "Plan & context" }).click();
  await panel.getByRole("heading", { name: "Round the totals" }).waitFor();
  assert.equal(await panel.getByText("Round them").count(), 0);
  await looks.at(app.page, "plans-panel");
  looks.done();
});
