// Files that travel with a message, and files from the agent: dropped, pasted, chosen, mentioned, kept over a reload and a restart, sent,
// queued, shown, listed and saved. e2e/window tests the features of the window alone (paths of a drop, its dialogs).
import assert from "node:assert/strict";
import fs from "node:fs";
import path from "node:path";
import { test } from "node:test";
import { App, Looks } from "./app.mjs";
import { Desk, until } from "./desk.mjs";
import { picture } from "./picture.mjs";

const blue = picture(320, 200, [60, 110, 220]);

const shelf = (app) => app.page.getByRole("list", { name: "Attachments" });
const chips = (app) => shelf(app).locator(":scope > li");
const chip = (app, name) => chips(app).filter({ hasText: name });
/** The server has the files, and what was chosen is kept through a reload. */
const uploaded = (app) => until("the uploads", async () => (await chips(app).and(app.page.locator("[aria-busy=true]")).count()) === 0);
const region = (app) => app.page.getByRole("region", { name: "Composer" });

/** Lets files hang above the page, or what is told of it, and lets them go. */
async function drag(app, types, files, over = app.page.locator("main")) {
  await over.evaluate((element, [types, files]) => {
    const transfer = new DataTransfer();
    for (const { name, type, bytes } of files) transfer.items.add(new File([Uint8Array.from(atob(bytes), (c) => c.charCodeAt(0))], name, { type }));
    window.dragged = transfer;
    for (const kind of types) element.dispatchEvent(new DragEvent(kind, { dataTransfer: transfer, bubbles: true, cancelable: true }));
  }, [types, files.map(({ name, type = "", data = "x" }) => ({ name, type, bytes: Buffer.from(data).toString("base64") }))]);
}

/** Pastes into the field for the message, as a browser does; says whether the page took it away from the field. */
function paste(app, { text = "", files = [], html = "" }) {
  return app.composer.evaluate((field, { text, files, html }) => {
    const data = new DataTransfer();
    if (text) data.setData("text/plain", text);
    if (html) data.setData("text/html", html);
    for (const { name, type, bytes } of files) data.items.add(new File([Uint8Array.from(atob(bytes), (c) => c.charCodeAt(0))], name, { type }));
    return !field.dispatchEvent(new ClipboardEvent("paste", { clipboardData: data, bubbles: true, cancelable: true }));
  }, { text, html, files: files.map(({ name, type, data }) => ({ name, type, bytes: data.toString("base64") })) });
}

/** The names of the draft's files as the server has them. */
const kept = async (desk) => (await desk.session()).attachments.map((one) => one.filename);

test("files are dropped, pasted, chosen and mentioned, and travel with the message", async (t) => {
  const looks = new Looks();
  const desk = Desk.make(t);
  fs.mkdirSync(path.join(desk.work, "src"));
  fs.writeFileSync(path.join(desk.work, "src", "lighthouse.go"), "package lighthouse\n");
  fs.writeFileSync(path.join(desk.work, "light rail.md"), "# Rails\n");
  await desk.start();
  const app = await App.open(desk, { agent: "Demo agent" });

  // The whole window shows the drop target, and nothing remains when the files are dragged away.
  const files = [{ name: "chart 100%.png", type: "image/png", data: blue }, { name: "notes ü.txt", type: "text/plain", data: "some notes\n" }];
  await drag(app, ["dragenter", "dragover"], files);
  const overlay = app.page.getByTestId("drop");
  await overlay.getByText("Attach 2 files to “Untitled”").waitFor();
  await looks.at(app.page, "attach-drop");
  await drag(app, ["dragenter", "dragleave"], files);
  await overlay.waitFor({ state: "detached" });
  await drag(app, ["dragenter", "dragover", "drop"], files);
  await chip(app, "chart 100%.png").getByText("sent as a picture").waitFor();
  await chip(app, "chart 100%.png").locator("img").waitFor();
  await chip(app, "notes ü.txt").getByText("sent with its content").waitFor();
  await overlay.waitFor({ state: "detached" });

  // Pasted: a picture, and a long text; a short text stays text.
  assert.equal(await paste(app, { files: [{ name: "image.png", type: "image/png", data: blue }] }), true);
  await chip(app, /pasted-.*\.png/).getByText("sent as a picture").waitFor();
  assert.equal(await paste(app, { text: "a".repeat(40_000) }), true);
  await chip(app, /pasted-.*\.txt/).waitFor();
  assert.equal(await paste(app, { text: "short" }), false);
  // In one call: the keys count for a second.
  assert.equal(await app.composer.evaluate((field, text) => {
    field.dispatchEvent(new KeyboardEvent("keydown", { key: "V", code: "KeyV", ctrlKey: true, shiftKey: true, bubbles: true, cancelable: true }));
    const data = new DataTransfer();
    data.setData("text/plain", text);
    return !field.dispatchEvent(new ClipboardEvent("paste", { clipboardData: data, bubbles: true, cancelable: true }));
  }, "b".repeat(40_000)), false, "it was wanted as text");

  // Chosen by the browser's own dialog.
  const asks = app.page.waitForEvent("filechooser");
  await app.button("Attach files…").click();
  await (await asks).setFiles([{ name: "data.bin", mimeType: "application/octet-stream", buffer: Buffer.from([0, 1, 2, 255]) }]);
  const binary = chip(app, "data.bin");
  await binary.getByText("sent as a link").waitFor();
  await binary.getByText(/A copy goes to \.deskhand\/attachments/).waitFor();

  // Mentioned, by keyboard: into a directory, and a name with a blank.
  await app.composer.fill("");
  await app.composer.pressSequentially("Look at @sr");
  const list = app.page.getByRole("listbox", { name: "Files and directories" });
  await list.getByRole("option", { name: /^src/ }).first().waitFor();
  await looks.at(app.page, "attach-mention");
  await until("the directory", async () => (await list.getByRole("option", { selected: true }).textContent()).trim().startsWith("src"));
  await app.composer.press("Tab");
  await until("the directory's path", async () => (await app.composer.inputValue()) === "Look at @src/");
  await until("the file", async () => (await list.getByRole("option", { selected: true }).textContent()).includes("lighthouse"));
  await app.composer.press("Enter");
  await until("the path", async () => (await app.composer.inputValue()) === "Look at @src/lighthouse.go ");
  await chip(app, "lighthouse.go").waitFor();
  await app.composer.pressSequentially("and @rail");
  await list.getByRole("option", { name: /light rail/ }).waitFor();
  await app.composer.press("Escape");
  await list.waitFor({ state: "detached" });
  await app.composer.pressSequentially("s");
  assert.equal(await app.composer.inputValue(), "Look at @src/lighthouse.go and @rails");

  // Removed by keyboard; the focus goes on to the next, and after the last back to the field.
  await looks.at(app.page, "attach-chips");
  await app.button("Remove data.bin").focus();
  await app.page.keyboard.press("ArrowLeft");
  assert.match(await app.page.evaluate(() => document.activeElement.getAttribute("aria-label")), /^Remove pasted-.*\.txt$/);
  await app.page.keyboard.press("Delete");
  await until("the focus on the next", async () => (await app.page.evaluate(() => document.activeElement.getAttribute("aria-label"))) === "Remove data.bin");
  assert.equal(await chips(app).count(), 5);
  await app.page.setViewportSize({ width: 720, height: 480 });
  await looks.at(app.page, "attach-small");
  await app.page.setViewportSize({ width: 1280, height: 800 });

  // They outlive the page, and the program.
  const names = await chips(app).locator(".name").allTextContents();
  await until("the draft", async () => (await kept(desk)).join() === names.join());
  await app.page.reload();
  await until("the chips after a reload", async () => (await chips(app).locator(".name").allTextContents()).join() === names.join());
  await desk.restart();
  const anew = app.page.waitForEvent("load"); // a link that changes the fragment alone has the page load itself anew
  await app.page.goto(desk.link);
  await anew;
  await until("the chips after a restart", async () => (await chips(app).locator(".name").allTextContents()).join() === names.join());
  await chip(app, "chart 100%.png").getByText("sent as a picture").waitFor();
  await app.composer.fill("attachments");
  await app.composer.press("Enter");
  await app.footers.getByText("Done", { exact: true }).waitFor();
  assert.equal(await chips(app).count(), 0);
  assert.deepEqual(await kept(desk), []);
  const sent = app.log.getByRole("list", { name: "Attached files" });
  assert.deepEqual(await sent.locator(".name").allTextContents(), names);
  assert.equal(await app.log.locator("[data-row=user] .block").count(), 0, "nothing of them is shown twice");
  await looks.at(app.page, "attach-sent");

  // A message may be files alone.
  await drag(app, ["drop"], [{ name: "alone.txt", type: "text/plain", data: "alone" }]);
  await chip(app, "alone.txt").waitFor();
  await app.button("Send").click();
  await sent.nth(1).getByText("alone.txt").waitFor();
  assert.equal((await desk.entries((await desk.session()).id)).findLast(({ kind }) => kind === "user").text ?? "", "");
  looks.done();
});

test("what is dropped on a row of the list goes with a new conversation there", async (t) => {
  const looks = new Looks();
  const desk = Desk.make(t);
  const there = path.join(desk.home, "there");
  fs.mkdirSync(there);
  await desk.start();
  await desk.api("POST", "/client/sessions", { agent: "mock", cwd: there, title: "Fix the login" });
  const app = await App.open(desk, { agent: "Demo agent" });
  await app.composer.fill("half a message");
  const files = [{ name: "trace.txt", type: "text/plain", data: "a trace" }, { name: "chart.png", type: "image/png", data: blue }];

  const row = app.page.getByRole("treeitem", { name: /Fix the login/ });
  await drag(app, ["dragenter", "dragover"], files, row);
  await row.getByText("New conversation here").waitFor();
  assert.equal(await app.page.getByTestId("drop").count(), 0, "it does not go to the conversation that is shown");
  await looks.at(app.page, "attach-drop-row");
  await drag(app, ["dragenter", "dragleave"], files, row);
  await row.getByText("New conversation here").waitFor({ state: "detached" });

  await drag(app, ["dragenter", "dragover", "drop"], files, row);
  await app.page.getByRole("button", { name: "Directory: there" }).waitFor();
  await chip(app, "trace.txt").waitFor();
  await chip(app, "chart.png").waitFor();
  assert.equal(await app.composer.inputValue(), "");
  assert.equal((await desk.api("GET", "/client/sessions?limit=10")).items.length, 2, "made before it was sent");

  // They wait through a reload, once the server has them, and begin nothing in a directory that has gone.
  await uploaded(app);
  await app.page.reload();
  await app.page.getByRole("treeitem", { name: /Fix the login/ }).waitFor();
  await app.button("New conversation", app.sidebar).click();
  await chip(app, "trace.txt").waitFor();
  await chip(app, "chart.png").waitFor();
  await app.composer.fill("What is in it?");
  fs.renameSync(there, `${there}-gone`);
  await app.composer.press("Enter");
  await app.page.getByText(`The directory ${there} does not exist.`).first().waitFor();
  assert.equal((await desk.api("GET", "/client/sessions?limit=10")).items.length, 2);
  fs.renameSync(`${there}-gone`, there);
  await app.composer.press("Enter");
  await app.log.waitFor();
  await until("the conversation", async () => (await desk.api("GET", "/client/sessions?limit=10")).items.length === 3);
  const made = await desk.session();
  assert.deepEqual([made.cwd, made.agent, made.title], [there, "mock", "What is in it?"]);
  const asked = await until("the message", async () => (await desk.entries(made.id)).find(({ kind }) => kind === "user"));
  assert.deepEqual(asked.attachments.map(({ filename }) => filename), ["trace.txt", "chart.png"]);
});

test("before there is a conversation, files are named and pasted, and wait through a reload", async (t) => {
  const desk = Desk.make(t);
  fs.mkdirSync(path.join(desk.work, "notes"));
  fs.writeFileSync(path.join(desk.work, "notes", "storm.md"), "a storm\n");
  await desk.start();
  const app = await App.open(desk);
  await app.choose("Directory", "Choose a directory…");
  await app.chooseDirectory(desk.work);
  await app.composer.pressSequentially("read @storm");
  await app.page.getByRole("option", { name: /storm\.md/ }).waitFor();
  await app.composer.press("Enter");
  await chip(app, "storm.md").waitFor();
  await app.composer.evaluate((field) => {
    const data = new DataTransfer();
    data.items.add(new File(["no light"], "lamp.log", { type: "text/plain" }));
    field.dispatchEvent(new ClipboardEvent("paste", { clipboardData: data, bubbles: true, cancelable: true }));
  });
  await chip(app, "lamp.log").waitFor();
  await uploaded(app);
  assert.deepEqual((await desk.api("GET", "/client/sessions")).items, []);

  await app.page.reload();
  await chip(app, "storm.md").waitFor();
  await chip(app, "lamp.log").waitFor();
  assert.equal(await app.composer.inputValue(), "read @notes/storm.md ");
  await app.button("Remove lamp.log").click();
  await chip(app, "lamp.log").waitFor({ state: "detached" });
  await app.composer.press("Enter");
  await app.log.waitFor();
  const { id, cwd } = await until("the conversation", () => desk.session());
  assert.equal(cwd, desk.work);
  const asked = await until("the message", async () => (await desk.entries(id)).find(({ kind }) => kind === "user"));
  assert.deepEqual([asked.text, asked.attachments.map(({ path }) => path)], ["read @notes/storm.md ", [path.join(desk.work, "notes", "storm.md")]]);
});

test("another conversation is named and travels along; skills are named", async (t) => {
  const looks = new Looks();
  const desk = Desk.make(t);
  const skill = path.join(desk.work, "skills", "weather");
  fs.mkdirSync(skill, { recursive: true });
  fs.writeFileSync(path.join(skill, "SKILL.md"), "---\nname: weather\ndescription: Answers questions about the weather.\n---\n# Weather\n");
  await desk.start();
  const query = `directory=${encodeURIComponent(desk.work)}&name=forecasts`;
  const { executable } = await desk.api("PUT", `/client/config/skills?${query}`, { sources: [{ type: "local", source: skill }] });
  if (executable) await desk.api("POST", "/client/trust", { directory: desk.work, hashes: [executable.hash] });
  const other = await desk.api("POST", "/client/sessions", { agent: "mock", cwd: desk.work, title: "The lamp: day/night" });
  await until("the agent", async () => (await desk.api("GET", `/client/sessions/${other.id}`)).phase === "ready");
  await desk.api("POST", `/client/sessions/${other.id}/prompt`, { message: "echo\nIt turns twice a minute" });
  await until("its turn", async () => (await desk.entries(other.id)).some((one) => one.kind === "agent"));
  const app = await App.open(desk, { agent: "Demo agent" });

  await app.composer.pressSequentially("echo as in #lam");
  const list = app.page.getByRole("listbox", { name: "Conversations" });
  await list.getByRole("option", { name: /The lamp/, selected: true }).waitFor();
  await looks.at(app.page, "mention-conversation");
  await app.composer.press("Enter");
  assert.equal(await app.composer.inputValue(), "echo as in #The lamp: day/night ");
  await chip(app, "The lamp day night.md").getByText("sent with its content").waitFor();
  await app.composer.pressSequentially("and $wea");
  await app.page.getByRole("listbox", { name: "Skills" }).getByRole("option", { name: /weather/ }).waitFor();
  await looks.at(app.page, "mention-skill");
  await app.composer.press("Tab");
  assert.equal(await app.composer.inputValue(), "echo as in #The lamp: day/night and $weather ");
  await app.composer.press("Enter");
  await app.footers.first().getByText("Done", { exact: true }).waitFor();
  await app.log.getByText("It turns twice a minute").first().waitFor();

  // A text that only looks like a name goes unchanged.
  const footer = await app.turn("help with #12 for $5 and $HOME");
  await footer.waitFor();
  await app.log.getByText("help with #12 for $5 and $HOME").waitFor();
  looks.done();
});

test("what cannot be attached is said, and keeps the others", async (t) => {
  const looks = new Looks();
  const desk = await Desk.open(t);
  const app = await App.open(desk, { agent: "Demo agent" });
  await drag(app, ["drop"], [{ name: "good.txt", type: "text/plain", data: "good" }]);
  await chip(app, "good.txt").waitFor();

  // A link that leads outside asks before the link is followed.
  const outside = path.join(desk.home, "secret.txt");
  fs.writeFileSync(outside, "outside");
  fs.symlinkSync(outside, path.join(desk.work, "innocent.txt"));
  await app.composer.pressSequentially("@innocent");
  const list = app.page.getByRole("listbox", { name: "Files and directories" });
  await list.getByRole("option", { name: /innocent/ }).waitFor();
  await app.composer.press("Enter");
  const asks = region(app).getByRole("alert").filter({ hasText: "innocent.txt" });
  await asks.getByText(`leads outside the directories of this conversation, to ${outside}`).waitFor();
  await looks.at(app.page, "attach-asks");
  await app.button("Leave it out", asks).click();
  await asks.waitFor({ state: "detached" });
  assert.deepEqual(await chips(app).locator(".name").allTextContents(), ["good.txt"]);
  await app.composer.fill("");
  await app.composer.pressSequentially("@innocent");
  await list.getByRole("option", { name: /innocent/ }).waitFor();
  await app.composer.press("Enter");
  await app.button("Attach its target", asks).click();
  await until("the file behind the link", async () => (await chips(app).count()) === 2);

  // A file that would go as a link and is gone: nothing is sent, and the message stays unchanged.
  fs.writeFileSync(path.join(desk.work, "gone.bin"), Buffer.from([0, 1, 2]));
  await app.composer.fill("");
  await app.composer.pressSequentially("@gone");
  await list.getByRole("option", { name: /gone/ }).waitFor();
  await app.composer.press("Enter");
  await chip(app, "gone.bin").getByText("sent as a link").waitFor();
  fs.rmSync(path.join(desk.work, "gone.bin"));
  await app.composer.press("Enter");
  await region(app).getByText("gone.bin is no longer there.").waitFor();
  assert.deepEqual([await app.composer.inputValue(), await chips(app).count(), (await desk.entries((await desk.session()).id)).length], ["@gone.bin ", 3, 0]);
  await app.button("Remove gone.bin").click();

  // Too large: the refusal comes before any upload.
  await app.page.evaluate(() => {
    const transfer = new DataTransfer();
    transfer.items.add(new File([new Uint8Array(51 * 1024 * 1024)], "film.mov"));
    document.querySelector("main").dispatchEvent(new DragEvent("drop", { dataTransfer: transfer, bubbles: true, cancelable: true }));
  });
  await region(app).getByText("film.mov is too large: at most 50 MiB per file.").waitFor();
  await drag(app, ["drop"], Array.from({ length: 99 }, (_, n) => ({ name: `many-${n}.txt`, data: `number ${n}` })));
  await region(app).getByText("A message takes at most 100 files.").waitFor();
  await until("a hundred", async () => (await chips(app).count()) === 100 && !(await shelf(app).locator("[aria-busy]").count()));
  await app.composer.fill("");
  await looks.at(app.page, "attach-many");
  await until("the draft", async () => (await kept(desk)).length === 100);
  looks.done();
});

test("an upload shows how far it is, and can be cancelled", async (t) => {
  const desk = await Desk.open(t);
  const app = await App.open(desk, { agent: "Demo agent" });
  let arrives;
  const arrived = new Promise((done) => (arrives = done));
  let goOn;
  const held = new Promise((done) => (goOn = done));
  await app.page.route("**/client/attachments", async (route) => {
    arrives();
    await held;
    await route.continue().catch(() => {}); // the request was cancelled
  });
  await drag(app, ["drop"], [{ name: "slow.txt", type: "text/plain", data: "slow" }, { name: "next.txt", type: "text/plain", data: "next" }]);
  await arrived;
  await chip(app, "slow.txt").getByRole("progressbar").waitFor();
  await app.composer.fill("too early");
  await app.composer.press("Enter");
  await region(app).getByText("A file is not ready yet. Send once it is.").waitFor();
  await app.button("Cancel slow.txt").click();
  goOn();
  await chip(app, "next.txt").getByText("sent with its content").waitFor();
  assert.deepEqual(await chips(app).locator(".name").allTextContents(), ["next.txt"]);
  await until("the draft", async () => (await kept(desk)).join() === "next.txt");
});

test("queued messages keep their files, also when they are edited", async (t) => {
  const looks = new Looks();
  const desk = await Desk.open(t);
  const app = await App.open(desk, { agent: "Demo agent" });
  await app.send("permission");
  await app.request.waitFor();
  await drag(app, ["drop"], [{ name: "plan.txt", type: "text/plain", data: "plan" }, { name: "map.png", type: "image/png", data: blue }]);
  await chip(app, "map.png").getByText("sent as a picture").waitFor();
  await app.send("attachments");
  const row = app.page.getByRole("region", { name: "Queue" }).getByRole("listitem").first();
  const names = row.getByRole("list", { name: "Attached files" }).locator(".name");
  await until("the files of the row", async () => (await names.allTextContents()).join() === "plan.txt,map.png");
  await looks.at(app.page, "attach-queue");
  await app.button("Edit", row).click();
  const field = app.page.getByRole("textbox", { name: "Queued message" });
  await field.fill("");
  await looks.at(app.page, "attach-queue-edit");
  await field.fill("attachments please");
  await field.press("Enter");
  await row.getByText("attachments please").waitFor();
  assert.deepEqual(await names.allTextContents(), ["plan.txt", "map.png"]);
  await app.request.getByRole("button", { name: /^Allow once/ }).click();
  await app.footers.nth(1).waitFor();
  const user = (await desk.entries((await desk.session()).id)).findLast(({ kind }) => kind === "user");
  assert.deepEqual([user.text, ...user.attachments.map((one) => one.filename)], ["attachments please", "plan.txt", "map.png"]);
  looks.done();
});

/** A clip of half a second, as the browser records one of a canvas. */
async function clip(page) {
  return Buffer.from(await page.evaluate(async () => {
    const canvas = Object.assign(document.createElement("canvas"), { width: 160, height: 90 });
    const recorder = new MediaRecorder(canvas.captureStream(20), { mimeType: "video/webm" });
    const parts = [];
    recorder.ondataavailable = ({ data }) => parts.push(data);
    const stopped = new Promise((done) => (recorder.onstop = done));
    recorder.start();
    const draw = canvas.getContext("2d");
    const began = performance.now();
    for (let now = began; now - began < 500; now = await new Promise(requestAnimationFrame)) {
      draw.fillStyle = `hsl(${now - began} 60% 50%)`;
      draw.fillRect(0, 0, 160, 90);
    }
    recorder.stop();
    await stopped;
    return btoa(String.fromCharCode(...new Uint8Array(await new Blob(parts).arrayBuffer())));
  }), "base64");
}

test("a clip of the agent is played where it stands", async (t) => {
  const desk = await Desk.open(t);
  const app = await App.open(desk, { agent: "Demo agent" });
  fs.writeFileSync(path.join(desk.work, "clip.webm"), await clip(app.page));
  await app.turn("attach clip.webm");
  const given = app.log.getByRole("article", { name: "File from Demo agent" });
  await app.button("Play clip.webm", given).click();
  const video = given.locator("video");
  await until("its picture", () => video.evaluate(({ videoWidth, videoHeight, currentTime }) => videoWidth === 160 && videoHeight === 90 && currentTime > 0));
  assert.match(await video.getAttribute("src"), /^blob:/);
});

test("files of the agent stand in the conversation, are listed, and can be saved", async (t) => {
  const looks = new Looks();
  const desk = Desk.make(t);
  const write = (name, data) => fs.writeFileSync(path.join(desk.work, name), data);
  write("chart.png", picture(960, 600, [63, 178, 127]));
  write("tall.png", picture(200, 1600, [217, 160, 63]));
  write("report.pdf", "%PDF-1.4\n%%EOF\n");
  write("drawing.svg", '<svg xmlns="http://www.w3.org/2000/svg"><script>document.title = "hurt"</script></svg>');
  write("tone.wav", Buffer.concat([Buffer.from("RIFF$\x08\0\0WAVEfmt \x10\0\0\0\x01\0\x01\0@\x1f\0\0@\x1f\0\0\x01\0\x08\0data\0\x08\0\0", "latin1"), Buffer.alloc(2048, 128)]));
  write("page.html", "<script>document.title = 'hurt'</script>");
  await desk.start();
  const app = await App.open(desk, { agent: "Demo agent" });
  await drag(app, ["drop"], [{ name: "question.txt", type: "text/plain", data: "how?" }]);
  await chip(app, "question.txt").getByText("sent with its content").waitFor(); // nothing is sent during the upload
  await app.turn("attach chart.png tall.png report.pdf drawing.svg tone.wav page.html");
  const given = app.log.getByRole("article", { name: "File from Demo agent" });
  await until("all of them", async () => (await given.count()) === 6);
  assert.deepEqual(await given.locator(".name").allTextContents(), ["chart.png", "tall.png", "report.pdf", "drawing.svg", "tone.wav", "page.html"]);

  // Pictures are shown, in the space reserved for them; active content is not.
  await given.nth(0).scrollIntoViewIfNeeded();
  await given.nth(0).locator("img").waitFor();
  const { width, height } = await given.nth(0).locator("img").boundingBox();
  assert.deepEqual([Math.round(width), Math.round(height)], [480, 300]);
  await given.nth(1).locator("img").waitFor();
  assert.equal(Math.round((await given.nth(1).locator("img").boundingBox()).height), 320);
  assert.equal(await given.nth(3).locator("img, svg[xmlns] script, object, iframe").count(), 0);
  assert.ok(!(await app.page.title()).includes("hurt"));
  await looks.at(app.page, "attach-given");
  await app.log.press("End");
  await looks.at(app.page, "attach-given-end");
  await app.button("Play tone.wav", given.nth(4)).click();
  await given.nth(4).locator("audio").waitFor();
  assert.match(await given.nth(4).locator("audio").getAttribute("src"), /^blob:/);
  await until("the tone", () => given.nth(4).locator("audio").evaluate(({ duration }) => duration > 0.2 && duration < 0.3));

  // Larger, and back.
  await app.button("Show chart.png larger").click();
  await app.page.getByRole("dialog", { name: "chart.png" }).locator("img").waitFor();
  await looks.at(app.page, "attach-view");
  await app.page.keyboard.press("Escape");
  await app.page.getByRole("dialog").waitFor({ state: "detached" });

  // A browser saves the file that the window would open.
  const saves = app.page.waitForEvent("download");
  await app.button("Download", given.nth(2)).click();
  const saved = await saves;
  assert.equal(saved.suggestedFilename(), "report.pdf");
  assert.equal(fs.readFileSync(await saved.path(), "utf8"), "%PDF-1.4\n%%EOF\n");

  // The list of all files, and the way back to a message.
  await app.button("Conversation actions").click();
  await app.page.getByRole("menuitem", { name: "Files…" }).click();
  const dialog = app.page.getByRole("dialog");
  const rows = dialog.getByRole("list", { name: "Files of this conversation" }).getByRole("listitem");
  await until("the list", async () => (await rows.count()) === 7);
  await looks.at(app.page, "attach-files");
  await dialog.getByRole("radio", { name: "Yours" }).check();
  assert.deepEqual(await rows.locator(".name").allTextContents(), ["question.txt"]);
  await dialog.getByRole("radio", { name: "From the agent" }).check();
  assert.equal(await rows.count(), 6);
  await app.page.setViewportSize({ width: 720, height: 480 });
  await looks.at(app.page, "attach-files-small");
  await app.button("Show in conversation: chart.png", dialog).click();
  await dialog.waitFor({ state: "detached" });
  await until("the entry", async () => {
    const box = await given.nth(0).boundingBox();
    if (box && box.y > 0 && box.y < 480) return true;
    throw new Error(JSON.stringify(box));
  });
  await looks.at(app.page, "attach-given-small");

  // Everything is there again after a restart.
  await app.page.setViewportSize({ width: 1280, height: 800 });
  await desk.restart();
  const anew = app.page.waitForEvent("load"); // a link that changes the fragment alone has the page load itself anew
  await app.page.goto(desk.link);
  await anew;
  await until("the files after a restart", async () => (await given.count()) === 6);
  await given.nth(0).scrollIntoViewIfNeeded();
  await given.nth(0).locator("img").waitFor();
  looks.done();
});
