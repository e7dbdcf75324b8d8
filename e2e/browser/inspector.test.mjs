// The inspector and the plan beside a conversation: the frames on the wire, the processes, and the agent's MCP servers.
import assert from "node:assert/strict";
import fs from "node:fs";
import path from "node:path";
import { test } from "node:test";
import { App, Looks } from "./app.mjs";
import { Desk, until } from "./desk.mjs";

const viewport = { width: 1440, height: 900 };
const small = { width: 720, height: 480 };

/** The parts of the inspector. */
function inspector(page) {
  const panel = page.getByRole("complementary", { name: "Side panel" });
  const list = panel.getByRole("listbox", { name: "Messages" });
  return {
    panel, list,
    rows: list.getByRole("option"),
    text: panel.getByRole("searchbox", { name: "Text in messages" }),
    method: panel.getByRole("searchbox", { name: "Method" }),
    message: panel.getByRole("region", { name: /^Message / }),
    part: (name) => panel.getByRole("button", { name, exact: true }),
    group: (name) => panel.getByRole("group", { name }),
  };
}

/** The rows as they are read: the method, and what the signs say. */
const read = (rows) => rows.evaluateAll((all) => all.map((row) =>
  [...row.querySelectorAll(".method, .visually-hidden")].map((part) => part.textContent.trim()).join(", ")));

test("what goes over the wire, by keyboard alone", async (t) => {
  const desk = await Desk.open(t);
  const app = await App.open(desk, { agent: "Demo agent", viewport, permissions: ["clipboard-read", "clipboard-write"] });
  const { page } = app;
  await page.keyboard.press("Alt+5");
  const { list, rows, text, method, message, part, group, panel } = inspector(page);
  await list.getByText("initialize").first().waitFor();

  // New frames appear by themselves, at the end.
  await app.turn("echo\nthe lighthouse");
  await rows.getByText("session/prompt").last().waitFor();
  await until("the answer", async () => (await read(rows)).at(-1)?.startsWith("session/prompt, from the agent, response"));

  // The filters.
  await method.fill("session/prompt");
  await until("the filter", async () => (await rows.count()) === 2);
  assert.deepEqual(await read(rows), ["session/prompt, to the agent, request", "session/prompt, from the agent, response"]);
  assert.match(await rows.last().innerText(), /\d+ (ms|s)/, "how long the agent took");
  await method.fill("");
  await text.fill("LIGHTHOUSE");
  await until("the text", async () => (await rows.count()) < 10 && (await read(rows)).includes("session/prompt, to the agent, request"));
  await panel.getByRole("radio", { name: "To agent" }).check();
  await until("the direction", async () => (await rows.count()) === 1);

  // A whole frame, and its copy.
  await list.focus();
  await page.keyboard.press("End");
  await message.getByText("the lighthouse").waitFor();
  assert.equal(await list.getAttribute("aria-activedescendant"), await rows.last().getAttribute("id"));
  await message.getByRole("button", { name: "Copy as JSON" }).focus();
  await page.keyboard.press("Enter");
  const copied = await until("the copy", async () => JSON.parse(await page.evaluate(() => navigator.clipboard.readText())));
  assert.equal(copied.params.prompt[0].text, "echo\nthe lighthouse");
  await page.keyboard.press("Escape");
  assert.equal(await message.count(), 0);
  assert.ok(await list.evaluate((element) => element === document.activeElement), "the focus is lost with the message");

  await text.fill("no such thing anywhere");
  await panel.getByText("No messages match the filter.").waitFor();
  await text.fill("");
  await panel.getByRole("radio", { name: "All" }).check();
  await rows.getByText("initialize").first().waitFor();

  // Paused, the list stands still; resumed, the list has every frame.
  const before = await desk.api("GET", `/client/sessions/${(await desk.session()).id}/frames?limit=1`);
  await until("the newest", async () => (await rows.last().getAttribute("id")).endsWith(`-${before.items[0].seq}`));
  await part("Pause").focus();
  await page.keyboard.press("Enter");
  await panel.getByText("Paused").waitFor();
  await app.turn("echo\nin the meantime");
  assert.match(await rows.last().getAttribute("id"), new RegExp(`-${before.items[0].seq}$`), "it goes on while it is paused");
  await part("Resume").focus();
  await page.keyboard.press("Enter");
  const { id } = await desk.session();
  const { items: [newest] } = await desk.api("GET", `/client/sessions/${id}/frames?limit=1`);
  assert.ok(newest.seq > before.items[0].seq);
  await until("the rest", async () => (await rows.last().getAttribute("id")).endsWith(`-${newest.seq}`));

  // Notes of ours, which the wire does not have.
  assert.ok(!(await read(rows)).some((row) => row.startsWith("turn.ended")));
  await panel.getByRole("checkbox", { name: "Notes" }).check();
  await rows.getByText("turn.ended").first().waitFor();

  // The recording.
  const download = page.waitForEvent("download");
  await part("Export recording").focus();
  await page.keyboard.press("Enter");
  assert.match((await download).suggestedFilename(), /\.zip$/);
  assert.equal(fs.readFileSync(await (await download).path()).subarray(0, 2).toString(), "PK");

  // The processes, their stderr, and the callers of the API.
  await part("Processes").focus();
  await page.keyboard.press("Enter");
  const { items } = await desk.api("GET", "/client/processes");
  const own = items.find((one) => one.session === id);
  await group("Processes").getByText(`${own.processes[0].name} ${own.pid}`).waitFor();
  await group("Processes").getByText(/^[\d.]+%$/).first().waitFor();
  await part("Error output").focus();
  await page.keyboard.press("Enter");
  await group("Error output").getByText("The agent has written nothing there.").waitFor();
  await app.send("crash");
  await group("Error output").getByText("From the agent that has ended.").waitFor();
  const { exit } = await desk.api("GET", `/client/sessions/${id}`);
  await group("Error output").getByText(exit.stderrTail.trim().split("\n").at(-1)).waitFor();
  await part("API calls").focus();
  await page.keyboard.press("Enter");
  await group("API calls").getByText(`POST /client/sessions/${id}/prompt`).first().waitFor();
});

test("a long conversation is read from its end to its beginning, with few rows in the page", async (t) => {
  const desk = await Desk.open(t);
  const app = await App.open(desk, { agent: "Demo agent", viewport });
  const { page } = app;
  await app.turn("burst");
  await page.keyboard.press("Alt+5");
  const { list, rows } = inspector(page);
  await rows.getByText("session/prompt").last().waitFor();
  const id = (await desk.session()).id;
  const { items: [newest] } = await desk.api("GET", `/client/sessions/${id}/frames?limit=1`);
  assert.ok(newest.seq > 10_000);
  await until("the end", async () => (await rows.last().getAttribute("id")).endsWith(`-${newest.seq}`));
  await list.focus();
  await until("the beginning", async () => {
    await page.keyboard.press("Home");
    return (await rows.first().innerText()).includes("initialize") && !(await rows.first().getAttribute("aria-setsize")).startsWith("-");
  });
  assert.ok((await rows.count()) < 100, "all rows are in the page");
  assert.equal(await rows.first().getAttribute("aria-posinset"), "1");
  assert.ok(Number(await rows.first().getAttribute("aria-setsize")) > 10_000);
  // The way back stands beside the rows, over none of them.
  const back = page.getByRole("button", { name: "Jump to the newest" });
  const [button, place] = await Promise.all([back.boundingBox(), list.boundingBox()]);
  assert.ok(button.y + button.height <= place.y || button.y >= place.y + place.height, "it hides a row");
  await back.focus();
  await page.keyboard.press("Enter");
  await until("the end again", async () => (await rows.last().getAttribute("id")).endsWith(`-${newest.seq}`));
  assert.ok(await list.evaluate((element) => element === document.activeElement), "the focus is lost with it");
  assert.ok(await back.isDisabled(), "it leads nowhere");
});

test("the plan as it goes, and what the agent was given", async (t) => {
  const desk = await Desk.open(t);
  const app = await App.open(desk, { agent: "Demo agent", viewport });
  const { page, request } = app;
  await page.keyboard.press("Alt+4");
  const panel = page.getByRole("complementary", { name: "Side panel" });
  const section = (name) => panel.getByRole("region", { name, exact: true });
  await panel.getByText("The agent has made no plan.").waitFor();
  await section("Usage").waitFor();
  await section("MCP servers").getByText("Deskhand’s own tools").waitFor();

  await app.send("Please show me around");
  await section("Plan").getByText("1 of 3 done").waitFor();
  await app.button("Allow once", request).click();
  await section("Plan").getByText("3 of 3 done").waitFor();
  await section("Usage").getByText(/^Context: .* of /).waitFor();
  assert.ok(Number(await section("Usage").getByRole("meter").getAttribute("aria-valuenow")) >= 0);
  await section("Usage").getByText(/^1 \(.* of work\)$/).waitFor();

  // A server that is there from the next start on, and is given then.
  const { id } = await desk.session();
  const where = `directory=${encodeURIComponent(desk.work)}`;
  await desk.api("PUT", `/client/config/mcp?${where}&name=files`, { type: "local", command: ["/bin/cat"] });
  await app.turn("echo\nonce more");
  const row = section("MCP servers").getByRole("listitem").filter({ hasText: "files" });
  await row.getByText("Not given until the next start").waitFor();
  await desk.api("POST", `/client/sessions/${id}/restart`);
  await row.getByText("Given to the agent").waitFor();

  await section("Directories").getByText("~/project").waitFor();
  await section("Attachments").getByText("No files were attached or received.").waitFor();
  await section("Skills").getByText("This directory has none.").waitFor();
  await section("Agent options").waitFor();

  // A file that cannot be read says so where its servers would be, at the edge of the other text.
  fs.writeFileSync(path.join(desk.work, ".sandbox-agent/config/mcp.json"), "{");
  await app.turn("echo\nand again");
  const problem = section("MCP servers").locator(".fault");
  await problem.waitFor();
  assert.equal(await problem.evaluate((element) => getComputedStyle(element).padding), "0px");

  // A plan that is far above is found as well, and led to.
  await app.turn("burst");
  await page.reload();
  await section("Plan").getByText("3 of 3 done").waitFor();
  await panel.getByRole("button", { name: "Show it in the conversation" }).click();
  await app.log.getByRole("group", { name: "Plan" }).waitFor();
});

test("the screens, large and small", async (t) => {
  const desk = await Desk.open(t);
  const looks = new Looks();
  const app = await App.open(desk, { agent: "Demo agent", viewport });
  const { page, request } = app;
  await desk.api("PUT", `/client/config/mcp?directory=${encodeURIComponent(desk.work)}&name=files`, { type: "local", command: ["/bin/cat"] });
  await app.send("Please show me around");
  await app.button("Allow once", request).click();
  await app.footers.first().waitFor();
  await page.keyboard.press("Alt+4");
  const { panel, rows, list, message, part, group } = inspector(page);
  await panel.getByRole("region", { name: "MCP servers" }).getByText("files").waitFor();
  await looks.at(page, "plan");
  await page.keyboard.press("Alt+5");
  await rows.getByText("session/prompt").last().waitFor();
  await part("Processes").click();
  await group("Processes").getByText(/^[\d.]+%$/).first().waitFor();
  await looks.at(page, "inspector");
  await list.focus();
  await page.keyboard.press("End");
  await message.locator("pre").waitFor();
  await looks.at(page, "inspector-message");
  await page.setViewportSize(small);
  await looks.at(page, "inspector-small");
  await page.keyboard.press("Alt+4");
  await panel.getByRole("region", { name: "MCP servers" }).waitFor();
  await looks.at(page, "plan-small");
  looks.done();
});
