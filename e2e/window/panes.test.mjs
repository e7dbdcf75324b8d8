// What the window's own engine has to show beside one conversation: two of them, a shell's terminal, Help with its pictures, and a file
// that is dropped while two conversations stand there. All of it by real keys and the real pointer.
import assert from "node:assert/strict";
import fs from "node:fs";
import path from "node:path";
import { onDesktop, until } from "./desktop.mjs";

const pane = (n) => `(//div[contains(concat(' ', @class, ' '), ' pane ')])[${n}]`;

onDesktop("two conversations, a shell, a dropped file and Help's pictures", async (d, t) => {
  d.desk.env.PS1 = d.env.PS1 = "$ ";
  await d.drive();
  await d.shows("Start your first conversation");
  const ids = {};
  for (const title of ["The lamp", "The horn"]) {
    const { id } = await d.desk.api("POST", "/client/sessions", { agent: "mock", cwd: d.desk.work, title });
    ids[title] = id;
    await d.click(`//*[@role = 'treeitem'][contains(., '${title}')]`);
    await d.find(`//h1[normalize-space() = '${title}']`);
  }
  await d.focus();

  // Beside each other; what is typed goes where the focus is.
  await d.key("ctrl+backslash");
  const names = () => d.js("return [...document.querySelectorAll('.pane h1')].map((one) => one.textContent)");
  await until("two panes", async () => (await names()).length === 2);
  const order = await names();
  assert.deepEqual([...order].sort(), ["The horn", "The lamp"]);
  const halves = await d.js("return [...document.querySelectorAll('.pane')].map((one) => { const { left, right, width } = one.getBoundingClientRect(); return { left, right, width } })");
  assert.ok(halves[0].right <= halves[1].left + 1 && Math.abs(halves[0].width - halves[1].width) < 2, JSON.stringify(halves));
  for (const [n, title] of order.entries()) {
    await d.click(`${pane(n + 1)}//textarea`);
    const typed = () => d.js("const at = document.activeElement; return at?.localName === 'textarea' && at === document.querySelectorAll('.pane')[arguments[0]].querySelector('textarea') ? `>${at.value}` : ''", n);
    await until("the composer's focus", typed);
    await d.xdotool("type", "--delay", "25", `help with ${title}`);
    await until("what was typed", async () => (await typed()) === `>help with ${title}`);
    await d.key("Return");
    await until(`the message of ${title}`, async () =>
      (await d.desk.entries(ids[title])).some((entry) => entry.kind === "user" && entry.text === `help with ${title}`));
  }
  for (const title of order) assert.equal((await d.desk.entries(ids[title])).filter((entry) => entry.kind === "user").length, 1);
  await d.picture("panes");

  // A file is dropped on the conversation that is worked in, and the window says which.
  const file = path.join(d.desk.work, "tide table.txt");
  fs.writeFileSync(file, "high water\n");
  const { x, y, width, height } = await d.place(await d.window());
  const where = { x: x + Math.round(width * 0.8), y: y + Math.round(height * 0.4) };
  const dropped = async () => (await d.desk.api("GET", `/client/sessions/${ids[order[1]]}`)).attachments?.map((one) => one.path).join();
  // WebKitGTK may tell the source that its first drop was taken and the page nothing of it; a person does it again.
  let tries = 0;
  await until("the file", async () => {
    assert.ok(++tries <= 3, "three drops came to nothing");
    await d.drop(file, where, () => d.shows(`Attach to “${order[1]}”`));
    return until("the chip", async () => (await dropped()) === file, 2_000).catch(() => false);
  }, 30_000);
  t.diagnostic(`drops: ${tries}`);
  assert.equal((await d.desk.api("GET", `/client/sessions/${ids[order[0]]}`)).attachments?.length ?? 0, 0);

  // A shell of the person's own: what is typed and what it says.
  await d.click(`${pane(2)}//textarea`);
  await d.key("alt+3");
  await d.click("//aside//button[contains(., 'New terminal')]");
  await until("the shell", () => d.js("return document.querySelector('aside .xterm-rows')?.innerText.includes('$')"));
  await until("the shell's focus", () => d.js("return document.activeElement?.closest('aside .xterm') !== null"));
  await d.xdotool("type", "--delay", "10", "echo seen $((6 * 7)) && pwd");
  await d.key("Return");
  await until("what the shell says", () => d.js("const said = document.querySelector('aside .xterm-rows').innerText; return said.includes('seen 42') && said.includes(arguments[0])", path.basename(d.desk.work)));
  await d.picture("shell");
  await d.key("ctrl+Escape");
  await until("the way out", () => d.js("return !document.activeElement?.closest('.xterm')"));

  // Help, whose pictures are files of the program.
  await d.key("alt+F1");
  await d.click("//div[@role = 'dialog']//nav//button[normalize-space() = 'First conversation'] | //dialog//nav//button[normalize-space() = 'First conversation']");
  const pictures = () => d.js(`
    const all = [...document.querySelectorAll("button.picture")];
    all[0]?.scrollIntoView();
    return all.map((one) => [...one.querySelectorAll("img")].filter((picture) => getComputedStyle(picture).display !== "none").map((picture) => picture.naturalWidth));
  `);
  const first = await until("the first picture", async () => { const [one] = await pictures(); return one?.[0] > 0 && one; });
  assert.equal(first.length, 1, "the pictures of both themes are shown");
  await d.picture("help");
});
