// What goes from right to left begins on the right, wherever people and agents write it, and a title that is cut keeps its beginning.
import assert from "node:assert/strict";
import { test } from "node:test";
import { App } from "./app.mjs";
import { Desk, until } from "./desk.mjs";

const title = "למה המנורה של המגדלור מסתובבת מהר מדי כשיש סערה מן המערב, ומה צריך לתקן קודם ואחר כך";

/** Runs in the page: whether the first word of an element's text can be seen in it, and stands right of its second. */
function begins(element) {
  const node = document.createTreeWalker(element, NodeFilter.SHOW_TEXT).nextNode();
  const place = (from, to) => {
    const range = document.createRange();
    range.setStart(node, from);
    range.setEnd(node, to);
    return range.getBoundingClientRect();
  };
  const [first, second] = node.data.trim().split(/\s+/);
  const at = node.data.indexOf(first);
  const one = place(at, at + first.length), other = place(at + first.length + 1, at + first.length + 1 + second.length);
  const { left, right } = element.getBoundingClientRect();
  return { seen: one.left >= left - 1 && one.right <= right + 1, before: one.left > other.left, atItsSide: right - one.right < 24 };
}
const wanted = { seen: true, before: true, atItsSide: true };

test("titles, messages and answers from right to left", async (t) => {
  const desk = await Desk.open(t);
  const { id } = await desk.api("POST", "/client/sessions", { agent: "mock", cwd: desk.work, title });
  await desk.api("POST", `/client/sessions/${id}/prompt`, { message: `${title}.\nsecond line` });
  const app = await App.open(desk, { viewport: { width: 720, height: 480 } });
  await until("the question", async () => (await desk.api("GET", "/client/inbox")).items.length === 1);
  await app.button("Show or hide the sidebar").click();
  const row = app.sidebar.getByRole("treeitem").filter({ hasText: "למה" });
  assert.deepEqual(await row.locator(".title").evaluate(begins), wanted, "the list");
  await row.click();
  const heading = app.page.getByRole("heading", { level: 1 }).filter({ hasText: "למה" });
  await heading.waitFor();
  assert.deepEqual(await heading.evaluate(begins), wanted, "the heading");
  const message = app.log.locator("[data-row=user] p").first();
  assert.deepEqual(await message.evaluate(begins), wanted, "the message");
  // The demo agent repeats what it was asked.
  const answer = app.log.locator(".markdown blockquote p").first();
  assert.deepEqual(await answer.evaluate(begins), wanted, "the answer");
  const quoted = app.log.locator(".markdown blockquote").first();
  assert.deepEqual(await quoted.evaluate((bar) => [getComputedStyle(bar).borderRightWidth, getComputedStyle(bar).borderLeftWidth]), ["3px", "0px"], "the bar");
  await app.composer.fill(title);
  assert.equal(await app.composer.evaluate((field) => getComputedStyle(field).unicodeBidi), "plaintext", "what is written");
});
