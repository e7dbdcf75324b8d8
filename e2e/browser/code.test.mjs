// What blocks of code in an answer lead to: the files they are of, the files they name, and a change of a file by a block.
import assert from "node:assert/strict";
import fs from "node:fs";
import path from "node:path";
import { test } from "node:test";
import { Looks } from "./app.mjs";
import { until } from "./desk.mjs";
import { said } from "./said.mjs";

const blocks = () => `The lamp needs a new constant:

\`\`\`go src/lamp.go
package lamp

// Gale is where the lamp slows down.
const Gale = 9

func Turn() int { return Gale * 2 }
\`\`\`

1. A test goes beside it:

   \`\`\`go
   // src/lamp_test.go
   package lamp

   import "testing"

   func TestTurn(t *testing.T) {}
   \`\`\`

Only one line changes in the program:

\`\`\`go title="src/main.go"
// ...
func theFunction() { lamp.Turn() }
\`\`\`

It failed before:

\`\`\`text
panic: no lamp
goroutine 1 [running]:
	src/main.go:203 +0x1d
	src/none.go:3 +0x1d
\`\`\`

\`\`\`sh
go vet src/main.go # and "src/lamp.go"
\`\`\`
`;

const put = (desk, name, text) => fs.writeFileSync(path.join(desk.work, name), text);
const read = (desk, name) => fs.readFileSync(path.join(desk.work, name), "utf8");

test("a block that is of a file opens the file, and changes it after a look at the difference", async (t) => {
  const { desk, app, answer } = await said(t, blocks, {
    files: { "src/lamp.go": "package lamp\n\n// Gale is where the lamp slows down.\nconst Gale = 10\n\nfunc Turn() int { return Gale }\n" },
  });
  const { page } = app;
  const looks = new Looks();
  const block = (text) => answer.locator(".code", { hasText: text });
  const panel = page.getByRole("complementary", { name: "Side panel" });

  // Each block has the name of its file; the one that is a part offers no Apply.
  await block("slows down").getByRole("link", { name: "src/lamp.go" }).waitFor();
  await block("TestTurn").getByText("New file").waitFor();
  await block("theFunction").getByRole("link", { name: "src/main.go" }).waitFor();
  assert.equal(await block("theFunction").getByRole("button", { name: /^Apply/ }).count(), 0);
  assert.equal(await block("go vet").getByRole("button", { name: /^Apply/ }).count(), 0);
  await looks.at(page, "code-named");

  await block("slows down").getByRole("link", { name: "src/lamp.go" }).click();
  await panel.getByText("const Gale = 10").first().waitFor();

  // The difference first, in colours; closed, nothing is written.
  await block("slows down").getByRole("button", { name: "Apply to src/lamp.go" }).click();
  const dialog = page.getByRole("dialog", { name: "Apply to src/lamp.go" });
  await dialog.locator(".add .changed").first().waitFor();
  await dialog.locator("[class^=tok-]").first().waitFor();
  await looks.at(page, "code-apply");
  await page.keyboard.press("Escape");
  await dialog.waitFor({ state: "detached" });
  assert.match(read(desk, "src/lamp.go"), /Gale = 10/);

  // A file that changed meanwhile is shown again before anything is written.
  await block("slows down").getByRole("button", { name: "Apply to src/lamp.go" }).click();
  await dialog.locator(".add").first().waitFor();
  const other = read(desk, "src/lamp.go").replace("10", "11");
  put(desk, "src/lamp.go", other);
  await dialog.getByRole("button", { name: "Apply", exact: true }).click();
  await dialog.getByText("The file has changed since you looked").waitFor();
  assert.equal(read(desk, "src/lamp.go"), other);
  await dialog.getByRole("button", { name: "Apply", exact: true }).click();
  await dialog.waitFor({ state: "detached" });
  assert.match(read(desk, "src/lamp.go"), /Gale = 9\n\nfunc Turn\(\) int \{ return Gale \* 2 \}\n$/);

  // One click puts it back. The Files tab follows.
  await panel.getByText("const Gale = 9").first().waitFor();
  await block("slows down").getByText("Applied").waitFor();
  await looks.at(page, "code-applied");
  await block("slows down").getByRole("button", { name: "Undo the change to src/lamp.go" }).click();
  await block("slows down").getByText("Put back").waitFor();
  assert.equal(read(desk, "src/lamp.go"), other);

  // A new file is said to be new, and is then a file like others.
  await block("TestTurn").getByRole("button", { name: "Apply to src/lamp_test.go" }).click();
  const made = page.getByRole("dialog", { name: "Create src/lamp_test.go" });
  await made.getByText("There is no such file yet").waitFor();
  await looks.at(page, "code-create");
  await made.getByRole("button", { name: "Create file" }).click();
  await made.waitFor({ state: "detached" });
  assert.equal(read(desk, "src/lamp_test.go"), 'package lamp\n\nimport "testing"\n\nfunc TestTurn(t *testing.T) {}\n');
  await block("TestTurn").getByText("Created").waitFor();
  await block("TestTurn").getByRole("link", { name: "src/lamp_test.go" }).click();
  await panel.getByText("TestTurn").first().waitFor();
  looks.done();
  assert.deepEqual(desk.complaints, []);
});

test("files that code and stack traces name are links, and keep the colours of the code", async (t) => {
  const { desk, app, answer } = await said(t, blocks, { files: { "src/lamp.go": "package lamp\n" } });
  const { page } = app;
  const panel = page.getByRole("complementary", { name: "Side panel" });
  const links = answer.locator("pre .there");
  await until("three files in code", async () => (await links.count()) === 3);
  assert.deepEqual(await links.allInnerTexts(), ["src/main.go:203", "src/main.go", "src/lamp.go"]);
  const shell = answer.locator(".code", { hasText: "go vet" });
  await shell.locator("[class^=tok-] .there, .there [class^=tok-]").first().waitFor();
  assert.ok((await shell.locator("pre [class^=tok-]").count()) > 1, "the colours of the code are gone");
  assert.match(await shell.locator("pre").innerText(), /^go vet src\/main\.go # and "src\/lamp\.go"\n?$/);
  const looks = new Looks();
  await looks.at(page, "code-links");
  looks.done();
  await links.first().click();
  await panel.getByText("theFunction").first().waitFor();
  assert.deepEqual(desk.complaints, []);
});
