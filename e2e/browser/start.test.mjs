// How Deskhand starts, and what it says when it cannot.
import assert from "node:assert/strict";
import fs from "node:fs";
import net from "node:net";
import path from "node:path";
import { test } from "node:test";
import { Desk, program, until } from "./desk.mjs";

test("a port that is taken is named, with a way out", async (t) => {
  const desk = Desk.make(t);
  const other = net.createServer();
  await new Promise((done) => other.listen(0, "127.0.0.1", done));
  t.after(() => new Promise((done) => other.close(done)));
  const { port } = other.address();
  const { code, out, err } = await desk.command(["server", "--port", String(port)]);
  assert.equal(code, 1);
  assert.equal(out, "");
  assert.match(err, new RegExp(`127\\.0\\.0\\.1:${port}`));
  assert.match(err, /--port/);
});

test("a data directory that cannot be written is named", async (t) => {
  const desk = Desk.make(t);
  const locked = path.join(desk.dir, "locked");
  fs.mkdirSync(locked);
  fs.chmodSync(locked, 0o555);
  // Root may write anywhere: as root the program runs as somebody else, from a place that everybody can read.
  const somebody = process.getuid() === 0 ? { uid: 65534, gid: 65534 } : {};
  const bin = path.join(desk.dir, "deskhand");
  fs.copyFileSync(program(), bin);
  fs.chmodSync(desk.dir, 0o755);
  for (const dir of [locked, path.join(locked, "deskhand")]) {
    const { code, out, err } = await desk.command(["server", "--port", "0", "--data-dir", dir], { ...somebody, bin, cwd: "/" });
    assert.equal(code, 1, err);
    assert.equal(out, "");
    assert.ok(err.includes(dir), err);
    assert.match(err, /permission denied/);
    assert.doesNotMatch(err, /panic|goroutine/);
  }
});

test("a second server on the same data says who holds it, and serves /v1 alone", async (t) => {
  const first = await Desk.open(t);
  const second = Desk.make(t, { env: { XDG_DATA_HOME: first.data } });
  await second.start();
  await until("what it says of the first", () => // by another pipe than its address
    new RegExp(`held by .*${first.server.pid}`).test(second.log) && second.log.includes(first.url.replace(/\/$/, "")));
  assert.doesNotMatch(second.link, /#code=/);
  const get = (route, token) => fetch(new URL(route, second.url), {
    headers: { Authorization: `Bearer ${fs.readFileSync(path.join(first.data, "deskhand", token), "utf8").trim()}` },
  });
  const health = await get("/v1/health", "token");
  assert.deepEqual([health.status, await health.json()], [200, { status: "ok" }]);
  assert.equal((await get("/client/hello", "client-token")).status, 404);
  await second.stop();
  await first.api("GET", "/client/hello"); // and the first one goes on
});

test("a browser without the link is told how to get in", async (t) => {
  const desk = await Desk.open(t);
  const page = await desk.page(desk.url);
  await page.getByRole("heading", { name: "Log in with the link" }).waitFor();
  await page.getByText("deskhand link").waitFor();
  // And by that it gets in.
  const { code, out, err } = await desk.command(["link"]);
  assert.equal(code, 0, err);
  await page.goto(out.trim());
  await page.getByRole("heading", { name: "Start your first conversation" }).waitFor();
  assert.equal(new URL(page.url()).hash, "");
});

test("a link works once", async (t) => {
  const desk = await Desk.open(t);
  const first = await desk.page();
  await first.getByRole("heading", { name: "Start your first conversation" }).waitFor();
  const second = await desk.page();
  await second.getByRole("heading", { name: "Log in with the link" }).waitFor();
  await second.getByText("This link has been used or has expired.").waitFor();
  // The first one stays in, over a reload too.
  await first.reload();
  await first.getByRole("heading", { name: "Start your first conversation" }).waitFor();
});
