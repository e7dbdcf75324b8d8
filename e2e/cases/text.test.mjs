// Answers as models write them, and keys of input methods, in Chromium: each test is a public report, reduced.
import assert from "node:assert/strict";
import fs from "node:fs";
import path from "node:path";
import { test } from "node:test";
import { App } from "../browser/app.mjs";
import { Desk, until } from "../browser/desk.mjs";
import { agent, noted } from "./scripted.mjs";

/** The app with one answer in it. */
async function answered(t, text) {
  const desk = Desk.make(t);
  desk.agents([agent(desk, (agent, text) => ({
    "session/prompt"(message) {
      agent.note("prompt", message.params.prompt);
      agent.say(text);
      agent.answer(message, { stopReason: "end_turn" });
    },
  }), { data: text })]);
  await desk.start();
  const app = await App.open(desk, { agent: "Scripted" });
  await app.turn("show it");
  return { desk, app, answer: app.log.getByRole("article", { name: "Answer" }).last() };
}

test("bold stands beside punctuation of Chinese and Japanese", async (t) => {
  const { answer } = await answered(t, "**重要：**请注意。\n\n* **免费：**不需要付费使用\n\n含**「重点」**内容。\n\n**これは「引用」**です。\n\n普通的**加粗**文字。\n");
  assert.deepEqual(await answer.locator("strong").allInnerTexts(), ["重要：", "免费：", "「重点」", "これは「引用」", "加粗"]);
});

test("a Markdown file with fences of its own is one block, and text follows", async (t) => {
  const { answer } = await answered(t, "Here is the README:\n\n```markdown\n# Tool\n\n```bash\nnpm i tool\n```\n\nMore of the file.\n```\n\nThat is **all**. See [the docs](https://example.com/).\n");
  assert.deepEqual(await answer.locator("strong").allInnerTexts(), ["all"]);
  assert.equal(await answer.getByRole("link", { name: "the docs" }).getAttribute("href"), "https://example.com/");
  assert.equal(await answer.locator("pre").count(), 1);
});

test("links to files of the directory open them", async (t) => {
  const { desk, app, answer } = await answered(t, "See [main.go](src/main.go:3), and [the first line](src/main.go#L1).\n");
  fs.mkdirSync(path.join(desk.work, "src"));
  fs.writeFileSync(path.join(desk.work, "src/main.go"), "package main\n\nfunc theFunction() {}\n");
  await answer.getByText("main.go", { exact: true }).click();
  await app.page.getByText("theFunction").first().waitFor();
});

test("formulas are shown as formulas, and prices as prices", async (t) => {
  const { answer } = await answered(t, "Inline \\(a_1 + b_1\\) here.\n\n\\[\nx = \\frac{1}{2}\n\\]\n\n$$\n\\int_0^1 x^2\\,dx\n$$\n\nIt costs $5 and $10.\n");
  await until("three formulas", async () => (await answer.locator("math").count()) === 3);
  assert.ok((await answer.innerText()).includes("It costs $5 and $10."));
});

test("keys of an input method send nothing and rename nothing", async (t) => {
  const { desk, app } = await answered(t, "ok");
  const composing = (field, key) => field.evaluate((field, key) => {
    field.dispatchEvent(new KeyboardEvent("keydown", { key, code: key, keyCode: 229, isComposing: true, bubbles: true, cancelable: true }));
  }, key);
  await app.composer.fill("にほん");
  await composing(app.composer, "Enter");
  assert.equal(await app.composer.inputValue(), "にほん");
  await app.sidebar.getByText("show it", { exact: true }).first().click({ button: "right" });
  await app.page.getByText(/^Rename/).first().click();
  const name = app.sidebar.locator("input.rename");
  await name.fill("にほん");
  for (const key of ["Enter", "Escape"]) {
    await composing(name, key);
    assert.equal(await name.count(), 1, `${key} within a composition ended the renaming`);
  }
  await name.press("Enter"); // and a key outside a composition ends the editing
  await until("the new name", async () => (await desk.session()).title === "にほん");
  assert.equal(noted(desk, "prompt").length, 1);
});
