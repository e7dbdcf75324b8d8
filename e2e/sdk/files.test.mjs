// The SDK's eight calls of the file system.
import assert from "node:assert/strict";
import { createHash, randomBytes } from "node:crypto";
import fs from "node:fs";
import path from "node:path";
import { test } from "node:test";
import { gzipSync } from "node:zlib";
import { problem, Runtime } from "./runtime.mjs";
import { tar } from "./tar.mjs";

const names = [
  "plain.txt", "with space & +plus%20.txt", "Ünder träe.txt", "漢字かな.txt", "🎉 party.txt", "#hash?query=1.txt", "tab\tand \"quotes\".txt",
];

/** That a time of the API is that of the file. */
function sameTime(modified, file) {
  assert.match(modified, /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?(Z|[+-]\d\d:\d\d)$/);
  const off = Date.parse(modified) - fs.lstatSync(file).mtimeMs;
  assert.ok(Math.abs(off) < 1000, `${off} ms`);
}

test("text and bytes go in and come out as they are, under any name", async (t) => {
  const runtime = await Runtime.open(t);
  const sdk = await runtime.connect();
  for (const name of names) {
    const file = path.join(runtime.work, "new", "folders", name);
    const text = `${name}\r\nzweite Zeile\n`;
    assert.deepEqual(await sdk.writeFsFile({ path: file }, text), { path: file, bytesWritten: Buffer.byteLength(text) });
    assert.equal(fs.readFileSync(file, "utf8"), text);
    assert.equal(Buffer.from(await sdk.readFsFile({ path: file })).toString(), text);
  }
  const listed = await sdk.listFsEntries({ path: path.join(runtime.work, "new", "folders") });
  assert.deepEqual(listed.map(({ name }) => name).sort(), [...names].sort());
});

test("a large binary file goes in and comes out, from every kind of body", async (t) => {
  const runtime = await Runtime.open(t);
  const sdk = await runtime.connect();
  const bytes = randomBytes(5 << 20); // the existing server refuses more than 2 MiB
  const file = path.join(runtime.work, "large.bin");
  const digest = (data) => createHash("sha256").update(data).digest("hex");
  for (const body of [bytes, new Blob([bytes]), new Uint8Array(bytes).buffer]) {
    assert.deepEqual(await sdk.writeFsFile({ path: file }, body), { path: file, bytesWritten: bytes.length });
    assert.equal(digest(fs.readFileSync(file)), digest(bytes));
    assert.equal(digest(await sdk.readFsFile({ path: file })), digest(bytes));
  }
  assert.deepEqual(await sdk.writeFsFile({ path: file }, ""), { path: file, bytesWritten: 0 });
  assert.equal((await sdk.readFsFile({ path: file })).length, 0);
  assert.deepEqual(fs.readdirSync(runtime.work), ["large.bin"], "something temporary is left");
});

test("a list tells directories first, then by name, with sizes, times and links", async (t) => {
  const runtime = await Runtime.open(t);
  const sdk = await runtime.connect();
  const at = (...name) => path.join(runtime.work, ...name);
  fs.writeFileSync(at("b.txt"), "four");
  fs.writeFileSync(at("a.txt"), "");
  fs.mkdirSync(at("z-folder"));
  fs.symlinkSync("b.txt", at("link"));
  const listed = await sdk.listFsEntries({ path: runtime.work });
  for (const { modified, path: file } of listed) sameTime(modified, file);
  assert.deepEqual(listed.map(({ name, path: file, entryType }) => [name, file, entryType]), [
    ["z-folder", at("z-folder"), "directory"], ["a.txt", at("a.txt"), "file"], ["b.txt", at("b.txt"), "file"], ["link", at("link"), "symlink"],
  ]);
  assert.deepEqual(Object.keys(listed[1]).sort(), ["entryType", "modified", "name", "path", "size"]);
  assert.deepEqual(listed.filter(({ entryType }) => entryType === "file").map(({ size }) => size), [0, 4]);
  // A relative path starts at the root, which is the user's home.
  assert.deepEqual(await sdk.listFsEntries({ path: "project" }), listed);
  assert.deepEqual((await sdk.listFsEntries()).map(({ name }) => name), fs.readdirSync(runtime.home).sort());
  assert.deepEqual(await sdk.listFsEntries({ path: at("z-folder") }), []);
  await assert.rejects(sdk.listFsEntries({ path: at("nope") }), problem(404, "not_found"));
  await assert.rejects(sdk.listFsEntries({ path: at("b.txt") }), problem(400, "invalid_request"));
});

test("stat tells what a path is", async (t) => {
  const runtime = await Runtime.open(t);
  const sdk = await runtime.connect();
  const file = path.join(runtime.work, "Ünder.txt");
  fs.writeFileSync(file, "four");
  const { modified, ...about } = await sdk.statFs({ path: file });
  assert.deepEqual(about, { path: file, entryType: "file", size: 4 });
  sameTime(modified, file);
  const directory = await sdk.statFs({ path: runtime.work });
  assert.deepEqual([directory.path, directory.entryType], [runtime.work, "directory"]);
  await assert.rejects(sdk.statFs({ path: path.join(runtime.work, "nope") }), problem(404, "not_found"));
});

test("mkdir makes what is missing, and again is nothing", async (t) => {
  const runtime = await Runtime.open(t);
  const sdk = await runtime.connect();
  const dir = path.join(runtime.work, "a", "b", "漢");
  for (let time = 0; time < 2; time++) assert.deepEqual(await sdk.mkdirFs({ path: dir }), { path: dir });
  assert.ok(fs.statSync(dir).isDirectory());
});

test("move renames, and replaces only when told", async (t) => {
  const runtime = await Runtime.open(t);
  const sdk = await runtime.connect();
  const [from, to] = ["from.txt", "to.txt"].map((name) => path.join(runtime.work, name));
  fs.writeFileSync(from, "new");
  fs.writeFileSync(to, "old");
  await assert.rejects(sdk.moveFs({ from, to }), problem(409, "conflict"));
  assert.equal(fs.readFileSync(to, "utf8"), "old");
  assert.deepEqual(await sdk.moveFs({ from, to, overwrite: true }), { from, to });
  assert.equal(fs.readFileSync(to, "utf8"), "new");
  assert.ok(!fs.existsSync(from));
  await assert.rejects(sdk.moveFs({ from, to }), problem(404, "not_found"));

  const [dir, other] = ["folder", "other"].map((name) => path.join(runtime.work, name));
  fs.mkdirSync(path.join(dir, "deep"), { recursive: true });
  assert.deepEqual(await sdk.moveFs({ from: dir, to: other }), { from: dir, to: other });
  assert.deepEqual(fs.readdirSync(other), ["deep"]);
});

test("delete removes a file, and a full directory only when told", async (t) => {
  const runtime = await Runtime.open(t);
  const sdk = await runtime.connect();
  const dir = path.join(runtime.work, "folder");
  const file = path.join(dir, "file.txt");
  fs.mkdirSync(dir);
  fs.writeFileSync(file, "x");
  await assert.rejects(sdk.deleteFsEntry({ path: dir }), problem(409, "conflict"));
  assert.ok(fs.existsSync(file));
  assert.deepEqual(await sdk.deleteFsEntry({ path: file }), { path: file });
  assert.deepEqual(await sdk.deleteFsEntry({ path: dir }), { path: dir });
  fs.mkdirSync(path.join(dir, "deep"), { recursive: true });
  assert.deepEqual(await sdk.deleteFsEntry({ path: dir, recursive: true }), { path: dir });
  assert.ok(!fs.existsSync(dir));
  await assert.rejects(sdk.deleteFsEntry({ path: dir }), problem(404, "not_found"));
});

test("a batch unpacks a tar with folders, bytes, modes and any name", async (t) => {
  const runtime = await Runtime.open(t);
  const sdk = await runtime.connect();
  const bytes = randomBytes(3 << 20);
  const long = `${"deep/".repeat(30)}end.txt`;
  const archive = tar([
    { name: "docs/" }, { name: "docs/readme.md", data: "# Hello\n" }, { name: "docs/bytes.bin", data: bytes }, { name: "empty.txt", data: "" },
    { name: "docs/Ünder 漢字 🎉.txt", data: "unicode" }, { name: "run.sh", data: "#!/bin/sh\n", mode: 0o755 }, { name: long, data: "far down" },
  ]);
  const wanted = (dir) => {
    const at = (name) => path.join(dir, name);
    assert.equal(fs.readFileSync(at("docs/readme.md"), "utf8"), "# Hello\n");
    assert.ok(fs.readFileSync(at("docs/bytes.bin")).equals(bytes));
    assert.equal(fs.readFileSync(at("empty.txt"), "utf8"), "");
    assert.equal(fs.readFileSync(at("docs/Ünder 漢字 🎉.txt"), "utf8"), "unicode");
    assert.equal(fs.readFileSync(at(long), "utf8"), "far down");
    assert.equal(fs.statSync(at("run.sh")).mode & 0o100, 0o100);
    assert.deepEqual(fs.readdirSync(dir).sort(), ["deep", "docs", "empty.txt", "run.sh"], "something temporary is left");
  };
  const dir = path.join(runtime.work, "up");
  const { paths, truncated } = await sdk.uploadFsBatch(archive, { path: dir });
  assert.equal(truncated, false);
  for (const name of ["docs/readme.md", "docs/bytes.bin", "docs/Ünder 漢字 🎉.txt", "empty.txt", "run.sh", long]) {
    assert.ok(paths.includes(path.join(dir, name)), `${name} is not in ${paths}`);
  }
  wanted(dir);
  // Over what is there already.
  await sdk.uploadFsBatch(new Blob([archive]), { path: dir });
  wanted(dir);

  const zipped = path.join(runtime.work, "zipped");
  const call = await runtime.v1("POST", `/v1/fs/upload-batch?path=${encodeURIComponent(zipped)}`, {
    headers: { "Content-Type": "application/x-tar+gzip" }, body: gzipSync(archive),
  });
  assert.equal(call.status, 200, JSON.stringify(call.data));
  wanted(zipped);
});

test("a batch with a link, a name that leads out or broken bytes is refused, and leaves nothing", async (t) => {
  const runtime = await Runtime.open(t);
  const sdk = await runtime.connect();
  const good = { name: "good.txt", data: "good" };
  const archives = {
    link: tar([good, { name: "evil", link: "/etc" }, { name: "evil/passwd", data: "x" }]),
    "hard link": tar([good, { name: "evil", hardLink: "/etc/passwd" }]),
    "..": tar([good, { name: "../evil.txt", data: "x" }]),
    absolute: tar([good, { name: path.join(runtime.dir, "evil.txt"), data: "x" }]),
    broken: tar([good, { name: "more.txt", data: "x".repeat(2000) }]).subarray(0, 2000),
    garbage: Buffer.from("this is no archive at all".repeat(100)),
  };
  for (const [what, archive] of Object.entries(archives)) {
    await t.test(what, async () => {
      const dir = path.join(runtime.work, "up");
      await assert.rejects(sdk.uploadFsBatch(archive, { path: dir }), problem(400, "invalid_request"));
      assert.deepEqual(fs.existsSync(dir) ? fs.readdirSync(dir) : [], []);
      assert.deepEqual(fs.readdirSync(runtime.work).filter((name) => name !== "up"), []);
    });
  }
});

test("a batch of more than 1024 files tells the first 1024", async (t) => {
  const runtime = await Runtime.open(t);
  const sdk = await runtime.connect();
  const archive = tar(Array.from({ length: 1100 }, (_, index) => ({ name: `${index}.txt`, data: `${index}` })));
  const dir = path.join(runtime.work, "many");
  const { paths, truncated } = await sdk.uploadFsBatch(archive, { path: dir });
  assert.deepEqual(paths, Array.from({ length: 1024 }, (_, index) => path.join(dir, `${index}.txt`)));
  assert.equal(truncated, true);
  assert.equal(fs.readdirSync(dir).length, 1100);
});

test("what lies outside of the root, and what is Deskhand's own, is refused", async (t) => {
  const runtime = Runtime.make(t);
  // Its data lies inside of the root, as it does in a real home.
  const own = path.join(runtime.home, ".local", "share");
  fs.mkdirSync(own, { recursive: true });
  runtime.env.XDG_DATA_HOME = own;
  await runtime.start();
  const sdk = await runtime.connect();
  const secret = path.join(own, "deskhand", "token");
  assert.ok(fs.existsSync(secret));
  fs.symlinkSync("/etc", path.join(runtime.work, "out"));
  const denied = problem(403, "permission_denied");
  for (const file of ["/etc/passwd", path.join(runtime.work, "out", "passwd"), secret]) {
    await assert.rejects(sdk.readFsFile({ path: file }), denied);
    await assert.rejects(sdk.writeFsFile({ path: file }, "x"), denied);
    await assert.rejects(sdk.statFs({ path: file }), denied);
    await assert.rejects(sdk.deleteFsEntry({ path: file }), denied);
    await assert.rejects(sdk.moveFs({ from: file, to: path.join(runtime.work, "mine") }), denied);
  }
  for (const file of [`${runtime.work}/../../passwd`, "../passwd", "project/../x", "nul\0byte"]) {
    await assert.rejects(sdk.readFsFile({ path: file }), problem(400, "invalid_request"));
    await assert.rejects(sdk.writeFsFile({ path: file }, "x"), problem(400, "invalid_request"));
  }
});
