// Files that are dropped on the real window from another one, with their real paths; and what the window does with the files of an
// agent: the system's program, the folder, a copy where the person says. The rest of attachments is tested in Chromium.
import assert from "node:assert/strict";
import fs from "node:fs";
import path from "node:path";
import { onDesktop, until } from "./desktop.mjs";

/** Opens the window with a conversation of the demo agent in it; gives the session's id. */
async function conversation(d) {
  await d.drive();
  await d.shows("Start your first conversation");
  const { id } = await d.desk.api("POST", "/client/sessions", { agent: "mock", cwd: d.desk.work, title: "Fix login" });
  await until("the agent", async () => (await d.desk.api("GET", `/client/sessions/${id}`)).phase === "ready");
  await d.click("//nav//*[contains(text(), 'Fix login')]");
  await d.find("//textarea");
  return id;
}

const draft = async (d, id) => (await d.desk.api("GET", `/client/sessions/${id}`)).attachments;
const chip = (name) => `//ul[@aria-label = 'Attachments']/li[contains(., ${JSON.stringify(name)})]`;

/** A point of the window, in parts of its size. */
async function point(d, across, down) {
  const { x, y, width, height } = await d.place(await d.window());
  return { x: x + Math.round(width * across), y: y + Math.round(height * down) };
}

/** Drops a file until what comes of it is there: WebKitGTK may tell the source that it was taken and the page nothing of it. A person does it again. */
async function drops(d, file, at, look, came) {
  let tries = 0;
  await until("what is dropped", async () => {
    assert.ok(++tries <= 3, "three drops came to nothing");
    await d.drop(file, at, look);
    return until("what comes of it", came, 4_000).catch(() => false);
  }, 60_000);
}

onDesktop("files and directories are dropped with their paths, wherever on the window", async (d) => {
  const id = await conversation(d);
  const far = path.join(d.desk.home, "Downloads 100% %s ü");
  fs.mkdirSync(far);
  const file = path.join(far, "50% off & more.txt");
  fs.writeFileSync(file, "half the price\n");
  const folder = path.join(d.desk.work, "pictures of lights");
  fs.mkdirSync(folder);
  const link = path.join(d.desk.work, "innocent.txt");
  const secret = path.join(d.desk.home, "secret.txt");
  fs.writeFileSync(secret, "outside");
  fs.symlinkSync(secret, link);

  // A person sees where it would go before letting go.
  let seen = "";
  const attached = async (n) => ((await draft(d, id)) ?? []).length === n;
  await drops(d, file, await point(d, 0.6, 0.4), async () => {
    await d.shows("Attach to “Fix login”");
    seen = await d.picture("drop");
  }, () => attached(1));
  assert.ok(seen);
  await d.find(chip("50% off & more.txt"));
  assert.equal(await d.js("return document.querySelector('[data-testid=drop]')"), null);
  assert.deepEqual((await until("the draft", async () => (await draft(d, id)).length === 1 && draft(d, id))).map((one) => one.path), [file]);
  assert.equal(await d.url(), "wails://wails/");

  // On the sidebar, too; a directory is sent as a link.
  const seenAbove = () => d.shows("Attach to “Fix login”"); // before that the page would refuse it
  await drops(d, folder, await point(d, 0.1, 0.6), seenAbove, () => attached(2));
  await d.find(chip("pictures of lights"));
  await d.shows("sent as a link");

  // A link that leads outside asks.
  const asks = () => d.js("return document.body.innerText.includes('innocent.txt is a link that leads out')");
  await drops(d, link, await point(d, 0.6, 0.9), seenAbove, asks);
  await d.picture("drop-asks");
  assert.equal((await draft(d, id)).length, 2);
  await d.click("//button[normalize-space() = 'Attach its target']");
  await until("the file behind it", async () => (await draft(d, id)).length === 3);
  await d.picture("drop-chips");

  // What is dragged within the page, or is no file, drops nothing: not even what was dropped before.
  await d.js(`
    const transfer = new DataTransfer();
    transfer.setData("text/uri-list", "https://example.org/");
    for (const kind of ["dragstart", "dragover", "drop", "dragend"])
      document.querySelector("main").dispatchEvent(new DragEvent(kind, { dataTransfer: transfer, bubbles: true, cancelable: true }));
  `);
  await d.drop(file, await point(d, 0.6, 0.4), seenAbove); // the same file again is no second one
  await d.type("//textarea", "attachments");
  await d.click("//button[normalize-space() = 'Send' or @aria-label = 'Send']");
  const user = await until("the message", async () => (await d.desk.entries(id)).find((entry) => entry.kind === "user"));
  assert.deepEqual(user.attachments.map((one) => one.filename).sort(), ["50% off & more.txt", "innocent.txt", "pictures of lights"]);
  await until("the empty draft", async () => (await draft(d, id)).length === 0);
});

onDesktop("files are chosen by the native dialog, and what is pasted goes to the program whole", async (d) => {
  const id = await conversation(d);
  const file = path.join(d.desk.work, "a picture 100%.txt");
  fs.writeFileSync(file, "no picture");
  await d.click("//button[@aria-label = 'Attach files…']");
  await d.choose("^Attach files$", file);
  await d.find(chip("a picture 100%.txt"));
  await until("the draft", async () => (await draft(d, id)).map((one) => one.path).join() === file);

  // The window's engine loses files on their way to the program's own scheme, were they not given as bytes.
  await d.js(`
    const bytes = new Uint8Array(300_000).map((_, at) => at % 251);
    const data = new DataTransfer();
    data.items.add(new File([bytes], "pasted.bin", { type: "application/octet-stream" }));
    const event = new Event("paste", { bubbles: true, cancelable: true });
    Object.defineProperty(event, "clipboardData", { value: data });
    document.querySelector("textarea").dispatchEvent(event);
  `);
  await d.find(chip("pasted.bin"));
  const pasted = await until("the bytes", async () => (await draft(d, id)).find((one) => one.filename === "pasted.bin"));
  assert.equal(pasted.size, 300_000);

  // By the real clipboard: a picture, and a long text, which the keys for it paste as text.
  const icon = path.join(import.meta.dirname, "../../app/icon.png");
  await d.copyPicture(icon);
  await d.activate();
  await d.js("document.querySelector('textarea').focus()");
  await d.key("ctrl+v");
  await d.find(chip(".png"));
  const picture = await until("the picture", async () => (await draft(d, id)).find((one) => one.mimeType === "image/png"));
  assert.deepEqual([picture.width, picture.height, picture.travels], [256, 256, "image"]);
  await d.picture("pasted");
});

onDesktop("files of the agent are opened, shown in their folder and saved, and no program is started", async (d) => {
  const asked = path.join(d.desk.dir, "asked");
  const opener = d.desk.script("xdg-open", `#!/bin/sh\nprintf '%s\\n' "$1" >>"${asked}"\nls -l "$1" >>"${asked}"\ncat "$1" >>"${asked}" 2>/dev/null\n`);
  d.env.PATH = `${path.dirname(opener)}:${d.env.PATH}`;
  const id = await conversation(d);
  fs.writeFileSync(path.join(d.desk.work, "report.txt"), "the whole report\n");
  fs.writeFileSync(path.join(d.desk.work, "install.sh"), "#!/bin/sh\n", { mode: 0o755 });
  fs.copyFileSync(path.join(import.meta.dirname, "../../app/icon.png"), path.join(d.desk.work, "icon.png"));
  await d.type("//textarea", "attach report.txt install.sh icon.png");
  await d.click("//button[normalize-space() = 'Send' or @aria-label = 'Send']");
  const of = (name, action) => `//article[contains(., '${name}')]//button[normalize-space() = '${action}']`;
  await d.find(of("install.sh", "Open"));
  await until("the end of the turn", async () => !(await d.desk.api("GET", `/client/sessions/${id}`)).turn);
  await until("the picture", () => d.js("return document.querySelector('article[aria-label] img')?.naturalWidth === 256"));
  await d.picture("given");

  await d.click(of("report.txt", "Open"));
  await until("the program", () => fs.existsSync(asked) && fs.readFileSync(asked, "utf8").includes("the whole report"));
  const said = fs.readFileSync(asked, "utf8");
  assert.match(said.split("\n")[0], /\/deskhand-opened-[^/]+\/[^/]+\/report\.txt$/, "a copy is opened");
  assert.match(said, /^-r--------/m, "nobody may write to it");

  fs.rmSync(asked);
  await d.click(of("install.sh", "Open"));
  await d.shows("install.sh could be a program");
  assert.ok(!fs.existsSync(asked), "it was opened");

  // No file browser answers here: the directory is opened.
  await d.click(of("install.sh", "Show in folder"));
  await until("the folder", () => fs.existsSync(asked) && fs.readFileSync(asked, "utf8").startsWith(d.desk.work + "\n"));

  const kept = path.join(d.desk.work, "kept 100%.txt");
  await d.click(of("report.txt", "Save as…"));
  await d.choose("^Save report.txt$", kept);
  await d.shows("Saved as");
  assert.equal(fs.readFileSync(kept, "utf8"), "the whole report\n");
});
