// What waits for a person, answered in Chromium: every control of a form, every key, and what is typed outlives a reload.
import assert from "node:assert/strict";
import path from "node:path";
import { test } from "node:test";
import { App, Looks } from "./app.mjs";
import { Desk, until } from "./desk.mjs";

const held = async (desk) => (await desk.api("GET", "/client/inbox")).items.length;

/** What the demo agent says that it was sent. */
async function sent(app) {
  await app.log.getByText("You sent the form:").last().waitFor();
  return until("the whole of what was sent", async () =>
    JSON.parse(await app.log.getByRole("article", { name: "Answer" }).last().locator("pre").last().innerText()));
}

test("every control of a form, by keyboard alone", async (t) => {
  const desk = await Desk.open(t);
  const app = await App.open(desk, { agent: "Demo agent" });
  const { page, request } = app;
  const { keyboard } = page;
  await app.send("form");
  await request.waitFor();
  await keyboard.press("Control+Period"); // into the card
  await until("the focus on the first field", () =>
    request.getByRole("textbox", { name: "Name" }).evaluate((element) => element === document.activeElement));

  // What is wrong is said at its field, and the first of them has the focus. Nothing is sent.
  await app.unguarded();
  await keyboard.type("A Name");
  await keyboard.press("Tab");
  await keyboard.type("no address");
  await keyboard.press("Enter");
  await request.getByText("This is not in the required format.").waitFor();
  await request.getByText("This is not an e-mail address.").waitFor();
  await request.getByText("This is needed.").first().waitFor(); // size, and features
  assert.ok(await request.getByRole("textbox", { name: "Name" }).evaluate((element) => element === document.activeElement));
  assert.equal(await held(desk), 1);

  await keyboard.press("Control+A");
  await keyboard.type("a-name");
  await keyboard.press("Tab");
  await keyboard.press("Control+A");
  await keyboard.type("ada@example.com");
  await keyboard.press("Tab"); // licence: what it begins with has the focus
  await keyboard.press("2");
  assert.ok(await request.getByRole("radio", { name: "Apache-2.0" }).isChecked(), "a digit takes the choice of its number");
  await keyboard.press("Tab"); // size
  await keyboard.press("Space");
  assert.ok(await request.getByRole("radio", { name: "Small" }).isChecked());
  await keyboard.press("ArrowDown");
  assert.ok(await request.getByRole("radio", { name: "Large" }).isChecked());
  await keyboard.press("Tab"); // port
  await keyboard.press("Control+A");
  await keyboard.type("70000");
  await keyboard.press("Tab"); // coverage
  await keyboard.press("Control+A");
  await keyboard.type("1.5");
  await keyboard.press("Tab"); // tests
  await keyboard.press("Space");
  await keyboard.press("Tab"); // features
  for (const digit of ["1", "2", "3"]) await keyboard.press(digit);
  await keyboard.press("Enter");
  await request.getByText("At most 65535.").waitFor();
  await request.getByText("At most 1.").waitFor();
  await request.getByText("Choose at most 2.").waitFor();
  await request.getByRole("textbox", { name: "Port" }).fill("80.5");
  await request.getByRole("textbox", { name: "Coverage" }).fill("half");
  await request.getByRole("checkbox", { name: "Web page" }).uncheck();
  await keyboard.press("Enter");
  await request.getByText("A whole number is needed.").waitFor();
  await request.getByText("A number is needed.").waitFor();
  await request.getByRole("textbox", { name: "Port" }).fill("80");
  await request.getByRole("textbox", { name: "Coverage" }).fill("0.25");
  await request.getByRole("checkbox", { name: "windows" }).check();
  assert.equal(await held(desk), 1);
  await request.getByRole("textbox", { name: "Name" }).press("Enter");
  assert.deepEqual(await sent(app), {
    name: "a-name", contact: "ada@example.com", licence: "Apache-2.0", size: "large", port: 80, coverage: 0.25, tests: false,
    features: ["api", "cli"], systems: ["linux", "windows"],
  });
});

test("what is typed outlives a reload, and ends with the request", async (t) => {
  const desk = await Desk.open(t);
  const app = await App.open(desk, { agent: "Demo agent" });
  const { page, request } = app;
  const kept = () => page.evaluate(() => Object.keys(sessionStorage).filter((key) => key.startsWith("deskhand.typed.")).length);
  await app.send("form");
  await request.getByRole("textbox", { name: "Name" }).fill("half-a-name");
  await request.getByRole("radio", { name: "Large" }).check();
  await request.getByRole("checkbox", { name: "With tests" }).uncheck();
  await request.getByRole("checkbox", { name: "Command line" }).check();
  await page.reload();
  await request.waitFor();
  assert.equal(await request.getByRole("textbox", { name: "Name" }).inputValue(), "half-a-name");
  assert.ok(await request.getByRole("radio", { name: "Large" }).isChecked());
  assert.ok(!(await request.getByRole("checkbox", { name: "With tests" }).isChecked()));
  assert.ok(await request.getByRole("checkbox", { name: "Command line" }).isChecked());
  // The inbox shows the same.
  await app.button(/^Inbox/).first().click();
  assert.equal(await request.getByRole("textbox", { name: "Name" }).inputValue(), "half-a-name");
  await app.button("Send answer", request).click();
  await page.getByText("Nothing is waiting for you").waitFor();
  assert.equal(await kept(), 0, "what was typed stays after the answer");

  // It ends as well when somebody else answers, here or while nobody looks.
  const { id } = await desk.session();
  await desk.api("POST", `/client/sessions/${id}/prompt`, { message: "questions", when: "queue" });
  await request.getByRole("checkbox", { name: "Olives" }).check();
  await request.getByText("Other…").click();
  await page.keyboard.type("Elderflower"); // the field has the focus by itself
  await page.reload();
  await request.waitFor();
  assert.ok(await request.getByRole("checkbox", { name: "Olives" }).isChecked());
  assert.equal(await request.getByRole("textbox", { name: "Your own answer" }).inputValue(), "Elderflower");
  const [one] = (await desk.api("GET", "/client/inbox")).items;
  await desk.api("POST", `/client/sessions/${id}/questions/${one.id}/reject`);
  await request.waitFor({ state: "detached" });
  assert.equal(await kept(), 0);
});

test("questions by keys: digits, no accident in the first moment, Escape answers nothing", async (t) => {
  const desk = await Desk.open(t);
  const app = await App.open(desk, { agent: "Demo agent" });
  const { page, request } = app;
  const { keyboard } = page;
  await app.send("question");
  await request.waitFor();
  assert.ok(await app.composer.evaluate((element) => element === document.activeElement), "the question took the focus");
  await keyboard.press("Control+Period");
  await app.unguarded();
  await keyboard.press("2");
  assert.ok(await request.getByRole("radio", { name: "Option B" }).isChecked());
  assert.equal(await held(desk), 1, "a digit chooses, and sends nothing");
  await keyboard.press("Escape");
  for (const name of ["Decline", "Later", "Back"]) await app.button(name, request).waitFor();
  assert.ok(await app.button("Later", request).evaluate((element) => element === document.activeElement));
  assert.equal(await held(desk), 1, "Escape answered");
  await keyboard.press("Enter"); // later
  await page.getByText("One request for later").waitFor();
  assert.equal(await held(desk), 1);
  await app.page.getByRole("button", { name: /One request for later/ }).click();
  await request.waitFor();
  assert.ok(await request.getByRole("radio", { name: "Option B" }).isChecked(), "what was chosen is gone");
  await app.unguarded();
  await request.getByRole("radio", { name: "Option B" }).focus();
  await keyboard.press("Enter");
  await app.log.getByText("You answered: option-b").waitFor();

  // A form tells declining from cancelling.
  await app.send("form");
  await request.waitFor();
  await keyboard.press("Control+Period");
  await app.unguarded();
  await keyboard.press("Escape");
  for (const name of ["Decline", "Cancel", "Later", "Back"]) await app.button(name, request).waitFor();
  assert.equal(await held(desk), 1);
  await app.button("Decline", request).click();
  await app.log.getByText("You declined the form, so I go on without it.").last().waitFor();
});

/** An agent that asks several things at once: method and params of each, by its name. */
function askingAtOnce(names, method, params) {
  return `#!${process.execPath}
const out = (message) => console.log(JSON.stringify({ jsonrpc: "2.0", ...message }));
let turn, answers = 0;
require("node:readline").createInterface({ input: process.stdin }).on("line", (line) => {
  const { id, method } = JSON.parse(line);
  if (method === "initialize") out({ id, result: { protocolVersion: 1 } });
  else if (method === "session/new") out({ id, result: { sessionId: "s" } });
  else if (method === "session/prompt") {
    turn = id;
    for (const message of ${JSON.stringify(names.map((name) => ({ id: name, method, params: { sessionId: "s", ...params(name) } })))}) out(message);
  } else if (!method && ++answers === ${names.length}) out({ id: turn, result: { stopReason: "end_turn" } });
});
`;
}

const threefold = askingAtOnce(["one", "two", "three"], "_sandboxagent/session/request_question", (name) => ({
  questionId: name, prompt: `Question ${name}`, options: ["yes", "no"],
}));

const twofold = askingAtOnce(["one", "two"], "session/request_permission", (name) => ({
  toolCall: { toolCallId: name, title: `Step ${name}` }, options: [{ optionId: "once", name: "Allow once", kind: "allow_once" }],
}));

test("a double click answers one request, and not the one that comes into its place", async (t) => {
  const desk = Desk.make(t);
  desk.agents([{ id: "twofold", name: "Twofold", command: desk.script("twofold", twofold) }]);
  await desk.start();
  const app = await App.open(desk, { agent: "Twofold" });
  const { page, request } = app;
  await app.send("ask");
  await request.getByText("1 of 2").waitFor();
  const allow = app.button("Allow once", request);
  await allow.dblclick();
  await page.getByLabel("Approval: Step two", { exact: true }).waitFor();
  await app.unguarded();
  assert.equal(await held(desk), 1);
  await allow.click();
  await app.footers.getByText("Done", { exact: true }).waitFor();
  assert.equal(await held(desk), 0);
});

test("nobody answers what they cannot see: a part of it stays in sight in the smallest window", async (t) => {
  const desk = await Desk.open(t);
  const app = await App.open(desk, { agent: "Demo agent" });
  const { page, request } = app;
  await page.setViewportSize({ width: 720, height: 480 });
  await app.send("permission");
  const seen = () => request.locator(".body").evaluate((body) => {
    const { top, bottom } = body.getBoundingClientRect();
    const buttons = body.closest("section").querySelector("footer").getBoundingClientRect();
    return { height: bottom - top, free: buttons.top - bottom, below: window.innerHeight - buttons.bottom, all: body.scrollHeight };
  });
  const fits = async (where) => {
    await until(`enough of it ${where}`, async () => {
      const { height, free, below, all } = await seen();
      return height >= Math.min(72, all) && free >= 0 && below > 0;
    });
  };
  await request.waitFor();
  await fits("in the conversation");
  await page.keyboard.press("Control+i");
  await request.waitFor();
  await fits("in the inbox");

  // What is out of sight is told, until it has been seen.
  await page.setViewportSize({ width: 720, height: 400 });
  await request.getByText("More below").waitFor();
  await fits("in a yet smaller one");
  await request.locator(".body").evaluate((body) => body.scrollTo(0, body.scrollHeight));
  await request.getByText("More below").waitFor({ state: "detached" });
});

test("several requests at once are paged through, one by one", async (t) => {
  const desk = Desk.make(t);
  desk.agents([{ id: "threefold", name: "Threefold", command: desk.script("threefold", threefold) }]);
  await desk.start();
  const app = await App.open(desk, { agent: "Threefold" });
  const { page, request } = app;
  await app.send("ask");
  await request.getByText("1 of 3").waitFor();
  await request.getByText("Question one").first().waitFor();
  await app.button("Next request", request).click();
  await request.getByText("2 of 3").waitFor();
  await request.getByText("Question two").first().waitFor();
  await app.button("Previous request", request).click();
  await request.getByText("Question one").first().waitFor();
  for (const [left, n] of ["one", "two", "three"].entries()) {
    const card = page.getByLabel(`Question: Question ${n}`, { exact: true }); // its role is another while it has the focus
    await card.getByRole("radio", { name: "yes" }).check();
    await app.button("Send answer", card).click();
    await card.waitFor({ state: "detached" });
    assert.equal(await held(desk), 2 - left);
    if (left === 0) await request.getByText("1 of 2").waitFor();
  }
  await app.footers.getByText("Done", { exact: true }).waitFor();
  assert.equal(await page.getByTestId("request").count(), 0);
});

test("a late answer is told who was first", async (t) => {
  const desk = await Desk.open(t);
  const app = await App.open(desk, { agent: "Demo agent" });
  const { page, request } = app;
  // On a bad line the page hears of nothing any more.
  let bad = false;
  await page.route("**/client/events**", async (route) => {
    const response = await route.fetch().catch(() => undefined); // the end of the test is that of what is held
    await (bad || !response ? route.abort() : route.fulfill({ response })).catch(() => {});
  });
  await page.reload();
  await app.send("question");
  await request.waitFor();
  const [one] = (await desk.api("GET", "/client/inbox")).items;
  bad = true;
  await desk.api("POST", `/client/requests/${one.id}/answer`, { answers: [["option-a"]] });
  await request.getByRole("radio", { name: "Option B" }).check();
  await app.button("Send answer", request).click();
  await page.getByText("Too late: this was answered over the API.").waitFor();
  bad = false;
  await app.log.getByText("You answered: option-a").waitFor();
});

test("an address is shown whole and opened only after consent", async (t) => {
  const desk = await Desk.open(t);
  const app = await App.open(desk, { agent: "Demo agent" });
  const { page, request } = app;
  const looks = new Looks();
  await page.context().route("https://*.invalid/**", (route) => route.fulfill({ body: "a page" }));
  const opened = [];
  page.context().on("page", (other) => opened.push(other.url()));
  const url = "https://sign-in.deskhand.invalid/device?code=DEMO-1234";

  await app.send("visit");
  await page.getByRole("region", { name: "Address: Sign in to go on." }).waitFor();
  assert.equal(await request.getByTestId("address").innerText(), url);
  assert.equal(await request.getByTestId("address").locator("strong").innerText(), "sign-in.deskhand.invalid");
  assert.equal(await request.getByRole("link").count(), 0, "there is something to click by accident");
  await looks.at(page, "address");
  await page.keyboard.press("Control+Period");
  await app.unguarded();
  assert.ok(await request.evaluate((element) => element === document.activeElement), "the focus is not on the card itself");
  await page.keyboard.press("Enter");
  await page.keyboard.press("Escape");
  for (const name of ["Decline", "Cancel", "Later", "Back"]) await app.button(name, request).waitFor();
  assert.equal(await held(desk), 1);
  await app.button("Back", request).click();
  assert.deepEqual(opened, []);
  const [popup] = await Promise.all([page.context().waitForEvent("page"), app.button("Open in the browser", request).click()]);
  await popup.waitForLoadState();
  assert.equal(popup.url(), url);
  assert.equal(await popup.evaluate(() => String(window.opener)), "null");
  await popup.close();
  await page.bringToFront();
  await app.log.getByText("All is done there.", { exact: true }).waitFor();
  await app.log.getByText("Finished there, from a browser", { exact: true }).waitFor();

  await app.send("lookalike");
  const warning = request.getByRole("note");
  await warning.getByText("sign-in.xn--dskhand-7gg.invalid").waitFor();
  await warning.getByText("sign-in.d\u0435skhand.invalid").waitFor();
  await looks.at(page, "address-lookalike");
  await app.button("Decline", request).click();
  await app.log.getByText("You declined, so I go on without it.").waitFor();
  assert.equal(opened.length, 1, "something was opened without consent");
  looks.done();
});

test("the inbox has all kinds, in both colours", async (t) => {
  const desk = await Desk.open(t);
  const app = await App.open(desk, { agent: "Demo agent" });
  const looks = new Looks();
  for (const word of ["visit", "form", "questions", "unknown request", "permission"]) {
    const { id } = await desk.api("POST", "/client/sessions", { agent: "mock", cwd: desk.work, title: `About a ${word}` });
    await desk.api("POST", `/client/sessions/${id}/prompt`, { message: word });
    await until(`the request of ${word}`, async () =>
      (await desk.api("GET", "/client/inbox")).items.some(({ session }) => session === id));
  }
  await app.button(/^Inbox/).first().click();
  await until("five rows", async () => (await app.page.getByRole("option").count()) === 5);
  for (const [n, [kind, word]] of [["Address", "visit"], ["Question", "form"], ["Question", "questions"], ["Unrecognised", "unknown request"], ["Approval", "permission"]].entries()) {
    const row = app.page.getByRole("option").nth(n);
    await row.getByText(new RegExp(`^${kind} · .* · ${path.basename(desk.work)}$`)).waitFor();
    // Fifty equal ones are told apart by whose they are.
    await row.getByText(`About a ${word}`, { exact: true }).waitFor();
  }
  for (let n = 0; n < 5; n++) {
    await looks.at(app.page, `inbox-${n}`);
    await app.page.keyboard.press("j");
  }
  looks.done();
});

test("two conversations that ask at once are two rows, each answered in its own", async (t) => {
  const desk = await Desk.open(t);
  const app = await App.open(desk);
  const { page, request } = app;
  const titles = ["The first of two", "The second of two"];
  const ids = [];
  for (const title of titles) ids.push((await desk.api("POST", "/client/sessions", { agent: "mock", cwd: desk.work, title })).id);
  await Promise.all(ids.map((id) => desk.api("POST", `/client/sessions/${id}/prompt`, { message: "question" })));
  await until("both requests", async () => (await held(desk)) === 2);
  await app.button(/^Inbox/).first().click();
  const row = (title) => page.getByRole("option").filter({ hasText: title });
  for (const title of titles) await row(title).waitFor();
  assert.equal(await page.getByRole("option").count(), 2);
  await app.sidebar.getByLabel("2 waiting for you").waitFor();
  await until("its number in the title", async () => /^\(2\)/.test(await page.title()));

  // The second is answered first: the other waits on, and the answer is in the conversation that asked.
  await row(titles[1]).click();
  await request.getByRole("radio", { name: "Option B" }).check();
  await app.button("Send answer", request).click();
  await row(titles[1]).waitFor({ state: "detached" });
  assert.equal(await page.getByRole("option").count(), 1);
  const last = async (id) => (await desk.entries(id)).findLast((entry) => entry.kind === "agent")?.text ?? "";
  await until("the answer", async () => (await last(ids[1])).includes("You answered: option-b"));
  assert.ok(!(await last(ids[0])).includes("You answered"));
  await request.getByRole("radio", { name: "Option A" }).check();
  await app.button("Send answer", request).click();
  await page.getByText("Nothing is waiting for you").waitFor();
  await until("the other answer", async () => (await last(ids[0])).includes("You answered: option-a"));
});

test("a method that nobody knows is a raw card in the inbox, and is dismissed there", async (t) => {
  const desk = await Desk.open(t);
  const app = await App.open(desk);
  const { page, request } = app;
  const begin = async (message) => {
    const { id } = await desk.api("POST", "/client/sessions", { agent: "mock", cwd: desk.work, title: `About ${message}` });
    await desk.api("POST", `/client/sessions/${id}/prompt`, { message });
    return id;
  };
  const last = async (id) => (await desk.entries(id)).findLast((entry) => entry.kind === "agent")?.text ?? "";
  const ids = [await begin("unknown request"), await begin("hologram")];
  await until("both requests", async () => (await held(desk)) === 2);
  await app.button(/^Inbox/).first().click();
  for (const [id, method, told] of [[ids[0], "demo/unknown_request", /client answered with error -32601/], [ids[1], "hologram", /You cancelled the form/]]) {
    const title = (await desk.api("GET", `/client/sessions/${id}`)).title;
    const row = page.getByRole("option").filter({ hasText: title });
    await row.getByText("Unrecognised").waitFor();
    await row.click();
    // All that was sent, to be read, and nothing to guess at.
    await request.locator("pre").getByText(method).first().waitFor();
    for (const control of ["textbox", "radio", "checkbox"]) assert.equal(await request.getByRole(control).count(), 0, control);
    assert.equal((await desk.api("GET", `/client/sessions/${id}`)).phase, "waiting", "nothing answers for the person");
    const dismiss = app.button("Dismiss", request);
    await app.unguarded();
    await dismiss.focus();
    await page.keyboard.press("Enter");
    await row.waitFor({ state: "detached" });
    await until("what the agent was told", async () => told.test(await last(id)));
    await until("the end of the turn", async () => !(await desk.api("GET", `/client/sessions/${id}`)).turn);
  }
  await page.getByText("Nothing is waiting for you").waitFor();
});

test("what several agents ask for alike is shown, and allowed at once", async (t) => {
  const looks = new Looks();
  const desk = await Desk.open(t);
  const ids = [];
  for (const [title, command] of [["Fix the lamp", "go test ./..."], ["Mend the horn", "go test ./..."], ["Clean up", "rm -r build"]]) {
    const { id } = await desk.api("POST", "/client/sessions", { agent: "mock", cwd: desk.work, title });
    await until("the agent", async () => (await desk.api("GET", `/client/sessions/${id}`)).phase === "ready");
    await desk.api("POST", `/client/sessions/${id}/prompt`, { message: `/ask-to-run ${command}` });
    ids.push(id);
    await until("its request", async () => (await held(desk)) === ids.length);
  }
  const app = await App.open(desk);
  const { page } = app;
  await page.keyboard.press("Control+i");
  await page.getByRole("option", { name: /Fix the lamp/ }).click();
  await app.button("Allow all 2 identical…").waitFor();
  await page.keyboard.press("Shift+A");
  const dialog = page.getByRole("dialog", { name: "Allow identical requests" });
  await dialog.getByText("$ go test ./...", { exact: true }).waitFor();
  const list = dialog.getByRole("list", { name: "Conversations that ask for it" });
  assert.deepEqual(await list.locator("li > span:first-child").allTextContents(), ["Fix the lamp", "Mend the horn"]);
  await app.button("Allow 2 once each").and(page.locator(":enabled")).waitFor();
  await looks.at(page, "requests-alike");

  // Enter is Cancel's, and nothing is allowed by it.
  await page.keyboard.press("Enter");
  await dialog.waitFor({ state: "detached" });
  assert.equal(await held(desk), 3);

  // One is answered elsewhere meanwhile: it is struck out, and the other is left.
  await page.keyboard.press("Shift+A");
  await dialog.waitFor();
  const [first] = (await desk.api("GET", "/client/inbox")).items.filter((one) => one.session === ids[0]);
  await desk.api("POST", `/client/requests/${first.id}/answer`, { optionId: first.options.find((one) => one.kind.startsWith("reject")).id });
  await app.button("Allow 1 once").click();
  await dialog.waitFor({ state: "detached" });
  await until("what is left", async () => (await held(desk)) === 1);
  await page.getByRole("option", { name: /Clean up/ }).waitFor();
  const [left] = (await desk.api("GET", "/client/inbox")).items;
  assert.equal(left.session, ids[2]);
  await page.keyboard.press("Shift+A");
  assert.equal(await dialog.count(), 0);
  looks.done();
});
