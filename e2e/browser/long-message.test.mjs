// A message of thousands of elements: only what stands near what is read is in the page, and nobody who reads, selects or looks for something notices.
import assert from "node:assert/strict";
import fs from "node:fs";
import path from "node:path";
import { test } from "node:test";
import { App } from "./app.mjs";
import { Desk, until } from "./desk.mjs";

const viewport = { width: 1280, height: 800 };
const paragraphs = 400;

/** An agent that says what a file holds, and then has so many looks at something, one after the other. */
const reader = (file, looks = 0) => `#!/usr/bin/env node
const write = (message) => process.stdout.write(JSON.stringify({ jsonrpc: "2.0", ...message }) + "\\n");
const answers = { initialize: { protocolVersion: 1, agentCapabilities: {} }, "session/new": { sessionId: "one" }, "session/prompt": { stopReason: "end_turn" } };
const update = (update) => write({ method: "session/update", params: { sessionId: "one", update } });
require("readline").createInterface({ input: process.stdin }).on("line", async (line) => {
  const { id, method } = JSON.parse(line);
  if (method === "session/prompt") {
    const text = require("fs").readFileSync(${JSON.stringify(file)}, "utf8");
    for (const piece of text.match(/[^]{1,1000}/g)) update({ sessionUpdate: "agent_message_chunk", content: { type: "text", text: piece } });
    for (let n = 1; n <= ${looks}; n++) {
      await new Promise((done) => setTimeout(done, 150));
      update({ sessionUpdate: "tool_call", toolCallId: "look " + n, title: "Look " + n, kind: "execute", status: "completed" });
    }
  }
  if (id !== undefined) write({ id, result: answers[method] ?? {} });
});
`;

/** A conversation in which the agent has said a text. */
async function said(t, words, looks) {
  const desk = Desk.make(t);
  const file = path.join(desk.dir, "words.md");
  fs.writeFileSync(file, words);
  desk.agents([{ id: "reader", name: "Reader", command: desk.script("reader.js", reader(file, looks)) }]);
  await desk.start();
  const app = await App.open(desk, { agent: "Reader", viewport });
  await app.turn("Read it to me");
  return { app, answer: app.log.getByRole("article", { name: "Answer" }) };
}

/** Paragraphs that are numbered, of many lengths, with code, lists and tables between them. */
function text() {
  const out = [];
  for (let n = 1; n <= paragraphs; n++) {
    out.push(`Number ${n} stands here.${" And it has words, so that it fills more than one line of the page.".repeat(n % 7)}`);
    if (n % 9 === 0) out.push(Array.from({ length: n % 11 }, (_, at) => `- *item* ${at} of \`${n}\``).join("\n") || "---");
    if (n % 25 === 0) out.push(`\`\`\`go\n${Array.from({ length: 70 }, (_, at) => `if x := step(${at}); x != nil { return ${n} }`).join("\n")}\n\`\`\``);
    if (n % 40 === 0) out.push(`| a | b |\n|---|---|\n${Array.from({ length: 12 }, (_, at) => `| ${at} | *${n}* |`).join("\n")}`);
  }
  return out.join("\n\n");
}

const elements = (app) => app.log.evaluate((log) => log.getElementsByTagName("*").length);

/**
 * Scrolls by steps of a wheel, one a frame, until the end of the way: every number that came into sight, how often what stood in the middle
 * moved otherwise than it should, how often nothing stood there, and the most elements.
 */
const scroll = (app, step) =>
  app.log.evaluate(
    (log, step) =>
      new Promise((done) => {
        const found = { numbers: [], jumps: 0, blank: 0, most: 0 };
        let middle, stood, still = 0, went = 0;
        // Near the edge of the text: a table is as wide as its columns.
        const edge = log.querySelector(".markdown").getBoundingClientRect().left + 40;
        const at = (part) => {
          const box = log.getBoundingClientRect();
          return document.elementFromPoint(edge, box.top + box.height * part);
        };
        const frame = () => {
          if (middle?.isConnected && Math.abs(middle.getBoundingClientRect().top - stood + went) > 2) found.jumps++;
          const frameOf = log.getBoundingClientRect();
          for (const one of log.querySelectorAll(".markdown p")) {
            const { top, bottom } = one.getBoundingClientRect();
            const number = /^Number (\d+) /.exec(one.textContent)?.[1];
            if (number && top < frameOf.bottom && bottom > frameOf.top) found.numbers.push(Number(number));
          }
          // Margins are blank, too, and lower than this.
          if ([0.2, 0.35, 0.5, 0.65, 0.8].every((part) => at(part)?.matches(".part, .markdown, [role=log]"))) found.blank++;
          found.most = Math.max(found.most, log.getElementsByTagName("*").length);
          middle = at(0.5)?.closest("p, li, pre, td");
          stood = middle?.getBoundingClientRect().top;
          const before = log.scrollTop;
          log.dispatchEvent(new WheelEvent("wheel", { deltaY: step, bubbles: true, cancelable: true }));
          log.scrollTop += step;
          went = log.scrollTop - before;
          still = went === 0 ? still + 1 : 0;
          if (still > 5) done(found);
          else requestAnimationFrame(frame);
        };
        requestAnimationFrame(frame);
      }),
    step,
  );

test("a long answer is in the page where it is read, and nothing moves while one scrolls", async (t) => {
  const { app, answer } = await said(t, text());
  const all = Array.from({ length: paragraphs }, (_, n) => n + 1);
  const check = async (what, step) => {
    const found = await scroll(app, step);
    t.diagnostic(`${what}: at most ${found.most} elements`);
    assert.deepEqual([...new Set(found.numbers)].sort((a, b) => a - b), all, `${what}: everything was seen`);
    assert.deepEqual({ jumps: found.jumps, blank: found.blank }, { jumps: 0, blank: 0 }, what);
    assert.ok(found.most < 3_000, `${what}: ${found.most} elements`);
  };
  await until("its end", async () => (await elements(app)) < 1_500);
  await app.log.getByText(`Number ${paragraphs} stands here`).last().waitFor();
  await app.log.focus();
  await check("up", -90);
  await check("down", 90);
  // Of one that is opened nobody knows yet how high it is.
  await app.page.reload();
  await answer.waitFor();
  await app.log.getByText(`Number ${paragraphs} stands here`).last().waitFor();
  assert.ok((await elements(app)) < 1_500, "opened in part");
  await app.log.focus();
  await check("up, opened anew", -90);
  await app.page.setViewportSize({ width: 760, height: 600 });
  await check("down, narrower", 90);
});

test("a long answer stays where it can be seen, whatever comes after it", async (t) => {
  const { app, answer } = await said(t, text(), 6);
  const seen = () =>
    answer.last().evaluate((element) => {
      const frame = element.closest("[role=log]").getBoundingClientRect();
      return [...element.querySelectorAll("p, td, li, pre")].filter((one) => {
        const { top, bottom } = one.getBoundingClientRect();
        return bottom > frame.top && top < frame.bottom;
      }).length;
    });
  await app.log.getByText("Ran 6 commands").waitFor();
  // What leaves does so a little a frame.
  await app.page.evaluate(() => new Promise((done) => {
    let frames = 60;
    const next = () => (frames-- > 0 ? requestAnimationFrame(next) : done());
    next();
  }));
  assert.ok((await seen()) > 5, `${await seen()} pieces of it are seen`);
  await app.page.reload();
  await app.log.getByText("Ran 6 commands").waitFor();
  await until("the answer above them", async () => (await seen()) > 5);
});

test("what is selected over a long answer is copied whole", async (t) => {
  const { app, answer } = await said(t, text());
  await app.page.reload();
  const last = answer.getByText(`Number ${paragraphs} stands here`);
  await last.waitFor();
  await last.click({ position: { x: 2, y: 6 } });
  await app.log.focus();
  await app.page.keyboard.press("Home");
  const first = answer.getByText("Number 1 stands here");
  await until("the beginning", async () => {
    await app.log.evaluate((log) => log.scrollBy(0, -20_000));
    return (await first.count()) > 0;
  });
  await first.scrollIntoViewIfNeeded();
  await first.click({ position: { x: 2, y: 6 }, modifiers: ["Shift"] });
  const numbers = await until("all of it", async () => { // the page hears of a selection a moment after it is made
    const found = [...(await app.page.evaluate(() => String(getSelection()))).matchAll(/Number (\d+) stands/g)].map(([, n]) => Number(n));
    return found.length >= paragraphs - 1 && found;
  });
  assert.deepEqual(numbers, Array.from({ length: paragraphs - 1 }, (_, n) => n + 1));
});

test("what is looked for in a long answer is found where it is not mounted", async (t) => {
  const { app } = await said(t, text().replace("Number 120 stands", "Number 120 glimmers"));
  await app.page.reload();
  await app.log.getByText(`Number ${paragraphs} stands here`).last().waitFor();
  await app.page.keyboard.press("Control+f");
  const field = app.page.getByRole("search").getByRole("textbox");
  await until("the field's focus", () => field.evaluate((one) => one === document.activeElement));
  await app.page.keyboard.type("glimmers");
  await app.page.getByRole("search").getByText("1 of 1").waitFor();
  await until("the word in sight", () =>
    app.page.evaluate(() => {
      const [range] = CSS.highlights.get("deskhand-find-current") ?? [];
      const box = range?.getBoundingClientRect();
      const frame = document.querySelector("[role=log]").getBoundingClientRect();
      return String(range) === "glimmers" && box.top >= frame.top && box.bottom <= frame.bottom;
    }));
});
