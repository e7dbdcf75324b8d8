// Somebody else takes the port after the program has ended, while a tab is open.
import assert from "node:assert/strict";
import fs from "node:fs";
import http from "node:http";
import { test } from "node:test";
import { App } from "./app.mjs";
import { Desk, until } from "./desk.mjs";

/** A program on a port that answers everything, and keeps all that it is sent. */
async function impostor(port) {
  const calls = [];
  const server = http.createServer((request, response) => {
    let body = "";
    request.on("data", (data) => (body += data));
    request.on("end", () => {
      calls.push({ path: request.url, all: [request.url, ...request.rawHeaders, body].join("\n") });
      response.writeHead(200, { "Content-Type": "application/json" });
      response.end(JSON.stringify({ items: [], start: "start", proof: "proof", token: "token", events: [], gen: "gen", seq: 1 }));
    });
  });
  await new Promise((done, fail) => server.once("error", fail).listen(port, "127.0.0.1", done));
  return { calls, close: () => new Promise((done) => { server.close(done); server.closeAllConnections(); }) };
}

test("a tab hands nothing to a program that takes the port, and goes on when Deskhand is back", async (t) => {
  const desk = await Desk.open(t);
  const app = await App.open(desk, { agent: "Demo agent" });
  await app.turn("help");
  const port = Number(new URL(desk.url).port);
  const token = () => app.page.evaluate(() => sessionStorage.getItem("deskhand.token"));
  const before = await token();
  assert.match(before, /^tab\./);
  const inside = async (token) => (await fetch(new URL("/client/hello", desk.url), { headers: { Authorization: `Bearer ${token}` } })).status;
  assert.equal(await inside(before), 200);

  await desk.stop();
  const thief = await impostor(port);
  t.after(() => thief.close());
  // The tab finds somebody there, again and again; a person writes on.
  await app.composer.fill("my own words");
  await app.composer.press("Enter");
  await until("tries of the tab", () => thief.calls.length >= 4);
  await app.page.evaluate(() => window.dispatchEvent(new Event("online")));
  const seen = thief.calls.length;
  await until("another try", () => thief.calls.length > seen);
  for (const { path, all } of thief.calls) {
    assert.match(path, /^\/(client\/tab\/proof$|assets\/)/, all); // a part of the page may be on its way, which has no secret
    assert.doesNotMatch(all, /authorization|cookie/i);
    for (const secret of [before, before.split(".")[2], fs.readFileSync(`${desk.data}/deskhand/client-token`, "utf8").trim(), "my own words"])
      assert.ok(!all.includes(secret), `${secret} was sent:\n${all}`);
  }
  await thief.close();

  await desk.start(port);
  await app.status.getByText("Connected").waitFor();
  const now = await token();
  assert.notEqual(now, before);
  assert.deepEqual([await inside(before), await inside(now)], [401, 200]);
  await app.turn("help");
  await app.page.reload(); // with the token alone
  await app.composer.waitFor();
  await app.turn("help");
});
