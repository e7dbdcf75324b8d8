// A person sees which limit of the account is nearly used up, and when it resets, before and after an agent is refused.
import assert from "node:assert/strict";
import { test } from "node:test";
import { App, Looks } from "./app.mjs";
import { Desk, until } from "./desk.mjs";

/** An agent whose account has limits, told as Claude's adapter tells them: "refuse" is answered by an error, any other prompt by its own words. */
const limited = `#!/usr/bin/env node
let session;
const now = Math.floor(Date.now() / 1000), hours = now + 5400, week = now + 3 * 86400;
const warning = { status: "allowed_warning", resetsAt: hours, rateLimitType: "five_hour", utilization: 0.86, isUsingOverage: false, surpassedThreshold: 0.8,
  unifiedWindows: { five_hour: { utilization: 0.86, resetsAt: hours }, seven_day: { utilization: 0.41, resetsAt: week } } };
const limits = {
  enough: { status: "allowed", resetsAt: hours, rateLimitType: "five_hour", isUsingOverage: false },
  broken: { status: 7, resetsAt: "soon", rateLimitType: ["five_hour"], utilization: {}, unifiedWindows: [warning] },
  little: warning,
  refuse: { status: "rejected", resetsAt: hours, rateLimitType: "five_hour", utilization: 1.02, isUsingOverage: false },
};
require("readline").createInterface({ input: process.stdin }).on("line", (line) => {
  const { id, method, params } = JSON.parse(line);
  const send = (message) => console.log(JSON.stringify({ jsonrpc: "2.0", ...message }));
  const update = (update) => send({ method: "session/update", params: { sessionId: session, update } });
  if (method === "initialize") send({ id, result: { protocolVersion: 1 } });
  if (method === "session/new") send({ id, result: { sessionId: (session = "s" + process.pid) } });
  if (method !== "session/prompt") return;
  const { text } = params.prompt[0];
  update({ sessionUpdate: "usage_update", used: 45196, size: 200000, _meta: { "_claude/rateLimit": limits[text], "_claude/model": "large" } });
  if (text === "refuse") return send({ id, error: { code: -32603, message: "Internal error", data: { details: "You've hit your session limit" } } });
  update({ sessionUpdate: "agent_message_chunk", content: { type: "text", text } });
  update({ sessionUpdate: "usage_update", used: 45196, size: 200000, cost: { amount: 0.36, currency: "USD" }, _meta: { "_claude/model": "large" } });
  send({ id, result: { stopReason: "end_turn" } });
});
`;

test("a limit of the account is told before it is reached, when it is, and no more after its reset", async (t) => {
  const looks = new Looks();
  const desk = await Desk.open(t);
  desk.agents([{ id: "limited", name: "Limited", command: desk.script("limited.js", limited) }]);
  const app = await App.open(desk, { agent: "Limited", viewport: { width: 1280, height: 800 } });
  const { page } = app;
  const chip = page.getByTestId("limit");
  const facts = page.getByRole("list", { name: "About this conversation" });

  for (const text of ["enough", "broken"]) {
    await app.turn(text);
    await facts.getByText("ctx 23%").waitFor();
    assert.equal(await chip.count(), 0, text);
  }
  await app.turn("little");
  await chip.getByText("5-hour limit 86%", { exact: true }).waitFor();
  const { limits } = (await desk.session()).usage;
  assert.deepEqual(limits.map(({ type, status, used }) => [type, status, used]), [["five_hour", "allowed_warning", 0.86], ["seven_day", undefined, 0.41]]);
  const clock = await page.evaluate((at) => new Date(at).toLocaleTimeString(undefined, { hour: "2-digit", minute: "2-digit" }), limits[0].resetsAt);
  await chip.getByText(new RegExp(`^· resets .*${clock}$`)).waitFor();
  assert.match(await chip.getAttribute("title"), /^5-hour limit 86% · resets .*\nWeekly limit 41% · resets [A-Z].*$/);
  await looks.at(page, "limits-near");

  await app.turn("refuse", "Failed");
  await chip.getByText("5-hour limit reached", { exact: true }).waitFor();
  const failure = page.getByTestId("failure");
  await failure.getByText("Limit reached", { exact: true }).waitFor();
  await failure.getByText(new RegExp(`^Resets at .*${clock}$`)).waitFor();
  await facts.getByText("$0.36").waitFor(); // the update about the limit has no cost
  await looks.at(page, "limits-reached");

  // In a narrow pane the name of the limit stays, and its reset is in the tooltip.
  await page.setViewportSize({ width: 560, height: 800 });
  await chip.getByText("5-hour limit reached", { exact: true }).waitFor();
  await until("no reset beside the limit", async () => !(await chip.getByText(/^· resets/).isVisible()));
  await looks.at(page, "limits-narrow");
  await page.setViewportSize({ width: 1280, height: 800 });

  // Two hours later, when the page comes to the front.
  await page.evaluate(() => {
    const later = Date.now() + 2 * 3_600_000;
    Date.now = () => later;
    document.dispatchEvent(new Event("visibilitychange"));
  });
  await chip.waitFor({ state: "detached" });
  await failure.getByText(/^Resets at/).waitFor({ state: "detached" });
  await failure.getByText("Limit reached", { exact: true }).waitFor();
  looks.done();
});
