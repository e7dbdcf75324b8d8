// What an answer holds beside words: formulas, tables, a file within fences, paths that open files. And the keys of an input method, with a
// composition of the browser's own.
import assert from "node:assert/strict";
import fs from "node:fs";
import path from "node:path";
import { test } from "node:test";
import { Looks } from "./app.mjs";
import { until } from "./desk.mjs";
import { picture } from "./picture.mjs";
import { said } from "./said.mjs";

const many = (work) => `**重要：**请注意，含**「重点」**内容。请看 https://example.com/a。

The energy is \\(E = mc^2\\), and $\\alpha_1$ is an angle; it costs $5 and $10.

\\[
x = \\frac{-b \\pm \\sqrt{b^2 - 4ac}}{2a}
\\]

$$
\\begin{aligned}
f(x) &= \\int_0^1 x^2\\,dx \\\\
     &= \\sum_{n=1}^{\\infty} \\frac{1}{n^2} \\in \\mathbb{R}
\\end{aligned}
$$

A matrix \\(\\begin{pmatrix}a & b \\\\ c & d\\end{pmatrix}\\), a box \\(\\boxed{y}\\), and one that is wrong: \\(\\nosuch{x}\\).

| Form | Meaning |
|---|---|
| \`a|b\` | either |
| one | two | three |
| \\(|x|\\) | how long |

\`\`\`markdown
# Tool

\`\`\`bash
npm i tool
\`\`\`

More of the file.
\`\`\`

See [main.go](src/main.go:203), [the same](${work}/src/main.go#L203), \`src/main.go:203\`, \`no/such.go\`, [blanks](src/a%20b%23c.go), [readme](docs/README.md),
[outside](../../etc/passwd) and [elsewhere](vscode://file/x). It fails in src/main.go:7, not in lib/none.go:3, https://localhost/src/main.go:7 or ../../etc/hosts.allow:1.
`;

test("formulas, tables, a file within fences and emphasis are seen", async (t) => {
  const { desk, app, answer } = await said(t, many);
  await answer.locator("math").first().waitFor();
  assert.equal(await answer.locator("math").count(), 7);
  assert.equal(await answer.locator("math msqrt").count(), 1);
  assert.equal(await answer.locator(".math > code").innerText(), "\\(\\nosuch{x}\\)");
  assert.equal(await answer.locator(".code").count(), 1, "a file is one block");
  assert.match(await answer.innerText(), /costs \$5 and \$10/);
  assert.deepEqual(await answer.locator("strong").allInnerTexts(), ["重要：", "「重点」"]);
  assert.deepEqual(await answer.locator("tbody tr").nth(1).locator("td").allInnerTexts(), ["one", "two | three"]);
  // What is copied is what was written.
  await answer.evaluate((element) => document.getSelection().selectAllChildren(element));
  const copied = await app.page.evaluate(() => new Promise((done) => {
    document.addEventListener("copy", (event) => done(event.clipboardData.getData("text/plain")), { once: true });
    document.execCommand("copy");
  }));
  assert.match(copied, /The energy is \\\(E = mc\^2\\\), and \$\\alpha_1\$ is an angle/);
  await app.page.evaluate(() => document.getSelection().removeAllRanges());
  const looks = new Looks();
  await looks.at(app.page, "markdown");
  looks.done();
  assert.deepEqual(desk.complaints, []);
});

test("paths in an answer open files at their lines, in the directories of the conversation alone", async (t) => {
  const { desk, app, answer } = await said(t, many);
  const asked = [];
  app.page.on("request", (request) => {
    if (request.url().endsWith("/tree/files")) asked.push(...JSON.parse(request.postData()).paths);
  });
  const panel = app.page.getByRole("complementary", { name: "Side panel" });
  const opens = async (what, text) => {
    await what.click();
    await panel.getByText(text).first().waitFor();
    await until("the line is in sight", () => panel.getByText(text).first().isVisible());
    await panel.getByRole("button", { name: "Back to the files" }).click();
  };
  await until("four links to files", async () => (await answer.locator("a.path").count()) === 4);
  assert.deepEqual(await answer.locator("span.path").allInnerTexts(), ["outside", "elsewhere"]);
  // What code and words name is a link where such a file exists, before anybody points at it.
  await answer.locator("code.there").waitFor();
  assert.deepEqual(await answer.locator("code.there").allInnerTexts(), ["src/main.go:203"]);
  await opens(answer.getByRole("link", { name: "src/main.go:7", exact: true }), "theFunction");
  for (const name of ["main.go", "the same"]) await opens(answer.getByRole("link", { name, exact: true }), "theFunction");
  await opens(answer.getByRole("link", { name: "blanks", exact: true }), "// blanks");
  await opens(answer.locator("code", { hasText: "src/main.go:203" }), "theFunction");
  assert.match(await answer.locator("code", { hasText: "src/main.go:203" }).getAttribute("class") ?? "", /there/);

  // By keyboard, and on from a file that has links itself.
  await answer.getByRole("link", { name: "readme", exact: true }).focus();
  await app.page.keyboard.press("Enter");
  await panel.getByRole("link", { name: "the program" }).click();
  await panel.getByText("theFunction").first().waitFor();

  // What is not there opens nothing, and looks like any other code.
  const before = await panel.innerText();
  await answer.locator("code", { hasText: "no/such.go" }).click();
  assert.equal(await panel.innerText(), before);
  assert.equal(await answer.locator("code", { hasText: "no/such.go" }).getAttribute("class"), null);
  // A file that has come since is found when somebody asks for it.
  fs.mkdirSync(path.join(desk.work, "no"));
  fs.writeFileSync(path.join(desk.work, "no/such.go"), "// it is here now\n");
  await until("the new file", async () => {
    await answer.locator("code", { hasText: "no/such.go" }).click();
    return panel.getByText("it is here now").first().isVisible();
  });
  assert.ok(asked.every((one) => one.startsWith(`${desk.work}/`)), `nothing outside was asked for: ${asked}`);
  assert.deepEqual(desk.complaints, []);
});

const seen = () => `The lamp at night:

![the lamp at night](https://pictures.example/lamp.png)

A picture of this computer: ![inner](https://127.0.0.1/lamp.png), and one without https: ![plain](http://pictures.example/lamp.png).
`;

test("a picture of the web is fetched when a person asks for it, by the server alone", async (t) => {
  const { desk, app, answer } = await said(t, seen);
  const { page } = app;
  const asked = [];
  page.on("request", (request) => asked.push(new URL(request.url())));
  const [lamp, inner] = [answer.locator(".remote").first(), answer.locator(".remote").nth(1)];
  await lamp.getByRole("button", { name: "Show picture of pictures.example" }).waitFor();
  assert.equal(await answer.locator(".remote").count(), 2);
  assert.match(await lamp.innerText(), /the lamp at night\s+pictures\.example\s+Show picture/);
  const looks = new Looks();
  await looks.at(page, "remote-picture");
  assert.deepEqual(asked.filter(({ pathname }) => pathname === "/client/picture"), [], "nothing is asked for by itself");

  // What leads to this computer is refused by the server itself.
  await inner.getByRole("button").click();
  await inner.getByText("127.0.0.1 leads to this computer or a private network").waitFor();
  await looks.at(page, "remote-picture-refused");

  // The host of the other one is of no network here: its answer is made up, as the server would send it.
  await page.route("**/client/picture?*", (route) => route.fulfill({ contentType: "image/png", body: picture(320, 120, [226, 176, 70]) }));
  await lamp.getByRole("button").click();
  const image = answer.getByRole("img", { name: "the lamp at night" });
  await image.waitFor();
  assert.match(await image.getAttribute("src"), /^blob:/);
  await looks.at(page, "remote-picture-shown");
  assert.deepEqual(asked.filter(({ protocol, host }) => protocol !== "blob:" && host !== new URL(page.url()).host), [], "the page asks nobody else");
  looks.done();
  desk.complaints.splice(0, desk.complaints.length, ...desk.complaints.filter((one) => !/400/.test(one)));
  assert.deepEqual(desk.complaints, []);
});

test("the keys of a composition send, rename, open and close nothing", async (t) => {
  const { desk, app } = await said(t, () => "Said.");
  const { page } = app;
  const wire = await page.context().newCDPSession(page);
  const composes = (text) => wire.send("Input.imeSetComposition", { text, selectionStart: text.length, selectionEnd: text.length });
  /** A key as the browser tells it while an input method is at work; and as Safari does, once it is done. */
  const key = async (name) => {
    await wire.send("Input.dispatchKeyEvent", { type: "rawKeyDown", key: name, code: name, windowsVirtualKeyCode: 229 });
    await wire.send("Input.dispatchKeyEvent", { type: "keyUp", key: name, code: name, windowsVirtualKeyCode: 229 });
  };
  const all = ["Enter", "Escape", "Tab", "ArrowDown", "ArrowUp"];
  const composed = async (field, text = "にほん") => {
    await field.focus();
    await composes(text);
    for (const name of all) await key(name);
    assert.equal(await field.inputValue(), text, "the composition is lost");
    await wire.send("Input.insertText", { text }); // the composition ends with what was chosen
    for (const name of ["Enter", "Escape"]) await key(name);
    assert.equal(await field.inputValue(), text);
    assert.ok(await field.evaluate((element) => element === document.activeElement), "the focus has left the field");
  };

  await composed(app.composer);
  assert.equal(await app.log.locator("[data-row=user]").count(), 1, "sent within a composition");
  await app.composer.fill("");

  await page.keyboard.press("Control+k");
  await composed(page.getByRole("dialog").getByRole("combobox"));
  await page.keyboard.press("Escape");
  await page.getByRole("dialog").waitFor({ state: "detached" });

  await page.keyboard.press("Control+Shift+f");
  await composed(page.getByRole("main").getByRole("combobox"));
  await page.keyboard.press("Escape");
  await app.composer.waitFor();

  const row = app.sidebar.getByRole("treeitem").filter({ hasText: "Read it to me" });
  await row.click({ button: "right" });
  await page.getByRole("menuitem", { name: /^Rename/ }).click();
  const rename = page.locator("input.rename");
  await rename.fill("");
  await composed(rename);
  await page.keyboard.press("Enter");
  await app.sidebar.getByRole("treeitem").filter({ hasText: "にほん" }).waitFor();
  assert.deepEqual(desk.complaints, []);
});
