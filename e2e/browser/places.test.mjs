// Places: a runtime elsewhere is added, a conversation runs there, the line to it breaks, the program dies in mid-turn, and the runtime does.
import assert from "node:assert/strict";
import net from "node:net";
import { test } from "node:test";
import { App, Looks } from "./app.mjs";
import { Desk, until } from "./desk.mjs";

const token = "the-token-of-the-other-machine-0123456789";

/** A TCP line to another address, which can be cut. */
class Line {
  sockets = new Set();
  down = false;

  static async open(t) {
    const line = new Line();
    line.server = net.createServer((near) => {
      if (line.down) return near.destroy();
      const far = net.connect(line.port, "127.0.0.1");
      for (const [one, other] of [[near, far], [far, near]]) {
        line.sockets.add(one);
        one.on("error", () => {}).on("close", () => {
          line.sockets.delete(one);
          other.destroy();
        });
        one.pipe(other);
      }
    });
    await new Promise((done) => line.server.listen(0, "127.0.0.1", done));
    line.host = `127.0.0.1:${line.server.address().port}`;
    t.after(() => {
      line.cut();
      line.server.close();
    });
    return line;
  }

  cut() {
    this.down = true;
    for (const socket of this.sockets) socket.destroy();
  }

  mend() {
    this.down = false;
  }
}

/** A Deskhand that is only a runtime, behind a line. */
async function elsewhere(t) {
  const line = await Line.open(t);
  const runtime = Desk.make(t);
  runtime.flags = ["--token", token, "--allow-host", line.host];
  await runtime.start();
  line.port = Number(new URL(runtime.url).port);
  return { line, runtime };
}

async function addPlace(app, line, { name = "Build machine", secret = token } = {}) {
  await app.settingsOf("Places");
  await app.button("Add a place").click();
  await app.page.getByRole("textbox", { name: "Name", exact: true }).fill(name);
  await app.page.getByRole("textbox", { name: "Address", exact: true }).fill(`http://${line.host}`);
  await app.page.getByLabel("Token", { exact: true }).fill(secret);
  await app.button("Add a place").click();
}

async function begin(app, directory, text) {
  await app.button("New conversation", app.sidebar).click();
  await app.page.getByRole("button", { name: /^Where:/ }).click();
  await app.page.getByRole("option", { name: /Build machine/ }).click();
  await app.page.getByRole("button", { name: "Agent: Demo agent" }).waitFor();
  await app.write(text, { directory });
}

const running = (runtime) => runtime.processes().filter(({ command }) => / demo-agent$/.test(command)).length;

test("a conversation runs at a place that was added, and goes on over a line that breaks", async (t) => {
  const looks = new Looks();
  const { line, runtime } = await elsewhere(t);
  const desk = await Desk.open(t);
  const app = await App.open(desk);

  await addPlace(app, line, { secret: "not-the-token-0123456789" });
  const row = app.page.getByRole("listitem").filter({ hasText: "Build machine" });
  await row.getByText("Token refused").waitFor();
  await looks.at(app.page, "places-refused");
  await app.button("Edit Build machine").click();
  await app.page.getByLabel("Token", { exact: true }).fill(token);
  await looks.at(app.page, "places-form");
  await app.button("Save", app.page.getByRole("region", { name: "Places" })).click();
  await row.getByText("Ready").waitFor();
  await row.getByText(/Deskhand/).waitFor();
  await looks.at(app.page, "places");
  assert.deepEqual((await desk.api("GET", "/client/hello")).places.length, 2);

  await app.button("New conversation", app.sidebar).click();
  await app.page.getByRole("button", { name: /^Where:/ }).click();
  await app.page.getByRole("option", { name: /Build machine/ }).click();
  await app.page.getByRole("button", { name: "Agent: Demo agent" }).waitFor();
  await looks.at(app.page, "places-new");
  await app.choose("Directory", "Choose a directory…");
  await app.page.getByRole("dialog").getByRole("option").first().waitFor();
  await looks.at(app.page, "places-browse");
  await app.page.keyboard.press("Escape");

  await begin(app, runtime.work, "echo Hello from afar");
  await app.footers.first().getByText("Done", { exact: true }).waitFor();
  assert.equal(running(runtime), 1);
  assert.equal(running(desk), 0);
  await app.page.getByRole("img", { name: "At Build machine" }).first().waitFor();
  await looks.at(app.page, "places-conversation");
  // What looks at this computer says that it does not look there.
  const panel = app.page.getByRole("complementary", { name: "Side panel" });
  for (const [key, words] of [["1", /where Deskhand does not look at files/], ["2", /are not on this computer/], ["3", /a terminal would be on this computer/]]) {
    await app.composer.press(`Alt+${key}`);
    await panel.getByText(words).waitFor();
  }
  await looks.at(app.page, "places-panel");
  await app.composer.press("Control+j"); // puts the panel away
  await panel.waitFor({ state: "hidden" });

  line.cut();
  await app.page.getByRole("status").getByText(/Lost contact with Build machine/).waitFor();
  await app.send("echo What was said meanwhile");
  await looks.at(app.page, "places-broken");
  line.mend();
  await app.footers.nth(1).getByText("Done", { exact: true }).waitFor();
  await until("mended line", async () => !(await desk.session()).line);
  const said = (await desk.entries((await desk.session()).id)).filter(({ kind }) => kind === "agent").map(({ text }) => text).join("\n");
  assert.equal(said.split("What was said meanwhile").length - 1, 1, said);

  const refused = await desk.call("DELETE", `/client/places/${(await desk.session()).place}`);
  assert.equal(refused.status, 409);
  assert.equal(refused.data.code, "place.used");
  assert.ok(!desk.log.includes(token));
  looks.done();
});

test("the agent goes on while the program is dead, and is answered after", async (t) => {
  const looks = new Looks();
  const { line, runtime } = await elsewhere(t);
  const desk = await Desk.open(t);
  await desk.api("POST", "/client/places", { name: "Build machine", url: `http://${line.host}`, token });
  let app = await App.open(desk);
  await begin(app, runtime.work, "permission");
  await app.request.waitFor();
  await app.page.close();
  await desk.kill();
  assert.equal(running(runtime), 1);
  await desk.start();
  app = await App.open(desk);
  await app.sidebar.getByText("permission", { exact: true }).first().click();
  await app.log.getByText(/Deskhand was away/).waitFor();
  await looks.at(app.page, "places-taken-up");
  await app.request.getByRole("button", { name: /^Allow once/ }).click();
  await app.footers.first().getByText("Done", { exact: true }).waitFor();
  await app.turn("echo and on");

  await runtime.kill(); // and with it the agent
  await runtime.gone();
  await app.page.getByRole("status").getByText(/Lost contact with/).waitFor();
  await runtime.start(line.port);
  await app.exit.getByText(/no longer knows/).waitFor();
  await looks.at(app.page, "places-gone");
  await app.turn("echo once more");
  looks.done();
});

test("places on the command line", async (t) => {
  const { line, runtime } = await elsewhere(t);
  const desk = await Desk.open(t);
  const env = { ...desk.env, DESKHAND_PLACE_TOKEN: token };
  const added = await desk.command(["places", "add", "Build machine", `http://${line.host}`], { env });
  assert.equal(added.code, 0, added.err);
  assert.match(added.out, /is ready: Deskhand/);
  const listed = await desk.command(["places"]);
  assert.match(listed.out, /Build machine +ready +Deskhand/);
  assert.ok(!(listed.out + added.out + added.err).includes(token));
  const said = await desk.command(["prompt", "--place", "build machine", "--agent", "mock", "--dir", runtime.work, "echo Hello from afar"]);
  assert.equal(said.code, 0, said.err);
  assert.match(said.out, /Hello from afar/);
  assert.equal((await desk.command(["prompt", "--place", "build machine", "--agent", "mock", "--dir", "here", "x"])).code, 2);
  assert.equal((await desk.command(["places", "add", "other", "http://192.0.2.1:1"], { env })).code, 2);
  const used = await desk.command(["places", "remove", "Build machine"]);
  assert.equal(used.code, 1, used.err);
  await desk.api("PATCH", `/client/sessions/${(await desk.session()).id}`, { archived: true });
  assert.equal((await desk.command(["places", "remove", "Build machine"])).code, 0);
  assert.equal((await desk.command(["places", "check", "Build machine"])).code, 2);
});
