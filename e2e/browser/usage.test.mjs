// A person sees what turns took, by day, agent, model, account and conversation, and as whom an agent is signed in.
import assert from "node:assert/strict";
import { readFile } from "node:fs/promises";
import { test } from "node:test";
import { App, Looks } from "./app.mjs";
import { Desk } from "./desk.mjs";

/** An agent that tells its account as Claude's adapter does, and takes 1,200 tokens and 0.25 USD a turn. */
const spender = `#!/usr/bin/env node
let session, cost = 0;
require("readline").createInterface({ input: process.stdin }).on("line", (line) => {
  const { id, method } = JSON.parse(line);
  const send = (message) => console.log(JSON.stringify({ jsonrpc: "2.0", ...message }));
  const update = (update) => send({ method: "session/update", params: { sessionId: session, update } });
  if (method === "initialize") {
    send({ id, result: { protocolVersion: 1, agentCapabilities: { _meta: { authStatus: {} } } } });
    send({ method: "_auth/status_update", params: { authStatus: { kind: "account", label: "Claude Max", account: { plan: "max", email: "ada@example.org" } } } });
  }
  if (method === "session/new") send({ id, result: { sessionId: (session = "s" + process.pid) } });
  if (method !== "session/prompt") return;
  update({ sessionUpdate: "agent_message_chunk", content: { type: "text", text: "done" } });
  update({ sessionUpdate: "usage_update", used: 45196, size: 200000, cost: { amount: (cost += 0.25), currency: "USD" }, _meta: { "_claude/model": "large-1" } });
  send({ id, result: { stopReason: "end_turn", usage: { inputTokens: 200, outputTokens: 1000, totalTokens: 1200 } } });
});
`;

test("the page Usage sums up what turns took", async (t) => {
  const looks = new Looks();
  const desk = await Desk.open(t);
  desk.agents([{ id: "spender", name: "Spender", command: desk.script("spender.js", spender) }]);
  const app = await App.open(desk, { agent: "Spender", viewport: { width: 1280, height: 1100 } });
  const { page } = app;
  await app.turn("one");
  await app.turn("two");
  const { title } = await desk.session();

  await app.settingsOf("Usage");
  const totals = page.getByLabel("In all");
  await totals.getByText("$0.50").waitFor();
  await totals.getByText("2.4k").waitFor();
  await page.getByRole("row", { name: /^Spender 2 2,400 400 2,000 0 .* \$0\.50$/ }).waitFor();
  await looks.at(page, "usage");

  for (const [by, name] of [["Model", "large-1"], ["Account", "Claude Max (ada@example.org)"]]) {
    await page.getByRole("radio", { name: by, exact: true }).check({ force: true });
    await page.getByRole("rowheader", { name }).waitFor();
  }
  await page.getByText("Show the numbers").first().click();
  await page.getByRole("region", { name: "Tokens a day" }).getByRole("row", { name: / 2 2,400 \$0\.50$/ }).waitFor();

  await page.getByRole("radio", { name: "Conversation", exact: true }).check({ force: true });
  await page.getByRole("button", { name: title, exact: true }).last().waitFor();
  const saved = page.waitForEvent("download");
  await page.getByRole("button", { name: "Export CSV" }).click();
  const text = await readFile(await (await saved).path(), "utf8");
  assert.match(text, /^session,name,turns,.*,cost USD\r\n[^,]+,one,2,0,[^,]+,2400,400,2000,0,0,0,0\.5\r\n$/);

  await page.locator("table").getByRole("button", { name: title, exact: true }).click();
  await page.getByRole("list", { name: "About this conversation" }).waitFor();

  await app.settingsOf("Agents");
  await page.getByText("Signed in: Claude Max (ada@example.org)").waitFor();
  await looks.at(page, "usage-account");
  looks.done();
});
