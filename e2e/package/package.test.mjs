// The packages as a person meets them: two builds are alike, and each is installed in a clean Debian, started there from the menu, and
// removed. The programs are the ones that were built, not this tree's.
import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import fs from "node:fs";
import os from "node:os";
import path from "node:path";
import { test } from "node:test";
import { Desktop, until } from "../window/desktop.mjs";
import { Jail, person } from "./jail.mjs";

const tree = path.resolve(import.meta.dirname, "../..");
const packages = path.join(tree, "build/bin/packages");
const output = (file, args, options) => execFileSync(file, args, { encoding: "utf8", maxBuffer: 1 << 28, ...options });
const one = (pattern) => {
  const found = fs.readdirSync(packages).filter((name) => pattern.test(name));
  assert.equal(found.length, 1, `${found} in ${packages}; build/package.sh makes them`);
  return path.join(packages, found[0]);
};
const deb = () => one(/\.deb$/);
const tarball = () => one(/-linux-.*\.tar\.gz$/);
const windows = () => one(/-windows-.*\.zip$/);
const field = (name) => output("dpkg-deb", ["--field", deb(), name]).trim();

test("a second build, in another directory and with nothing kept of the first, gives the same bytes", (t) => {
  const dir = fs.mkdtempSync(path.join(os.tmpdir(), "deskhand-twice-"));
  t.after(() => fs.rmSync(dir, { recursive: true, force: true }));
  const copy = path.join(dir, "some where", "else"); // the name is longer, and has a space
  fs.mkdirSync(copy, { recursive: true });
  const built = ["build/bin", "build/tools", "frontend/dist", "e2e/node_modules"].map((name) => `--exclude=./${name}`);
  execFileSync("sh", ["-c", 'from=$0 to=$1; shift; tar -c -C "$from" "$@" . | tar -x -C "$to"', tree, copy, ...built]);
  const env = { ...process.env, GOCACHE: path.join(dir, "cache"), TMPDIR: dir, LANG: "de_DE.UTF-8", TZ: "Asia/Tokyo" };
  execFileSync("build/package.sh", { cwd: copy, env, stdio: ["ignore", "ignore", "inherit"] });
  const sums = (at) => output("sha256sum", fs.readdirSync(at).sort(), { cwd: at });
  assert.equal(sums(path.join(copy, "build/bin/packages")), sums(packages));
});

test("the package says what it is and needs, and runs nothing when it is installed", () => {
  assert.equal(field("Package"), "deskhand");
  for (const library of ["libgtk-3-0", "libwebkit2gtk-4.1-0", "libc6"]) assert.match(field("Depends"), new RegExp(`(^|, )${library} `));
  const parts = output("dpkg-deb", ["--ctrl-tarfile", deb()], { encoding: "buffer" });
  const control = output("tar", ["-t"], { input: parts }).split("\n").filter((name) => name && !name.endsWith("/"));
  assert.deepEqual(control.sort(), ["./control", "./md5sums"], "a script of ours would run as root");
  for (const line of output("dpkg-deb", ["--contents", deb()]).trim().split("\n")) {
    assert.match(line, /^[-dl]\S+ root\/root /, line);
    assert.ok(!/^.{3}[sS]|^.{6}[sS]|^-.{7}w/.test(line), `${line}: more than its owner may write it, or it gives rights`);
  }
});

test("the archive for Windows has both programs, each with its icon and version", (t) => {
  const dir = fs.mkdtempSync(path.join(os.tmpdir(), "deskhand-windows-"));
  t.after(() => fs.rmSync(dir, { recursive: true, force: true }));
  execFileSync("unzip", ["-q", windows(), "-d", dir]);
  const [name] = fs.readdirSync(dir);
  assert.deepEqual(fs.readdirSync(path.join(dir, name)).sort(), ["LICENSE.txt", "deskhand-desktop.exe", "deskhand.exe", "licenses.txt"]);
  for (const [program, subsystem] of [["deskhand.exe", "Windows CUI"], ["deskhand-desktop.exe", "Windows GUI"]]) {
    const file = path.join(dir, name, program);
    const headers = output("x86_64-w64-mingw32-objdump", ["-p", file]);
    assert.match(headers, new RegExp(`Subsystem\\s+\\S+\\s+\\(${subsystem}\\)`));
    const version = Buffer.from(`ProductVersion\0`, "utf16le");
    assert.ok(fs.readFileSync(file).includes(version), `${program} has no version of Windows' kind`);
    assert.ok(fs.readFileSync(file).includes("PerMonitorV2"), `${program} has no manifest`);
  }
});

/** A desktop outside, whose screen the programs in the jail use, and a bus of the person's in the jail. */
async function desk(t) {
  const jail = await Jail.open(t, field("Depends"));
  const d = await Desktop.open(t);
  const env = {
    HOME: `/home/${person}`, USER: person, SHELL: "/bin/bash", DISPLAY: d.env.DISPLAY, XDG_RUNTIME_DIR: "/run/user/1000",
    XDG_CURRENT_DESKTOP: "GNOME", DBUS_SESSION_BUS_ADDRESS: "unix:path=/run/user/1000/bus",
    GTK_A11Y: "none", NO_AT_BRIDGE: "1", DESKHAND_CATALOGUE_URL: "off", DESKHAND_LOGIN_SHELL: "off", // no network, and no waiting
  };
  const start = (args) => {
    const [file, ...rest] = jail.inside(args, { env });
    return d.launch({ file, args: rest });
  };
  start(["dbus-daemon", "--session", "--nofork", "--nopidfile", `--address=${env.DBUS_SESSION_BUS_ADDRESS}`]);
  await until("the bus", () => jail.command(["test", "-S", "/run/user/1000/bus"]).then(() => true));
  return { jail, d, start, as: (args) => jail.command(args, { env }) };
}

/** What a click in the desktop's menu does. The program has a log instead of our pipe, which it would keep open. */
const menu = ["sh", "-c", "exec gtk-launch deskhand >>/tmp/menu.log 2>&1"];

/** Waits until the window is there and shows the app: an empty one has few colours. */
async function appears({ d }) {
  const window = await d.window();
  await until("the page", async () => {
    const file = path.join(os.tmpdir(), `deskhand-portrait-${process.pid}.png`);
    await d.portrait(file, window);
    const colours = Number(output("identify", ["-format", "%k", file]));
    fs.rmSync(file);
    return colours > 100 && colours;
  }, 60_000);
  return window;
}

/** One turn of the demo agent, from a terminal of the person's while the window is open. */
async function turn({ as }, program) {
  const said = await as([program, "prompt", "--agent", "mock", "--approve", "once", "--dir", `/home/${person}`, "the lighthouse"]);
  assert.match(said, /the lighthouse/);
  assert.match(await as([program, "sessions"]), /Demo agent/);
}

/** Ends the program as the desktop does when the person logs out. */
async function ends({ as }) {
  await as(["pkill", "-TERM", "-x", "deskhand-deskto"]); // names of processes have 15 letters
  await until("the end of the program", async () => (await as(["sh", "-c", "pgrep -l deskhand || true"])) === "");
}

test("the .deb is installed, started from the menu, used, and removed without a trace but the person's own", async (t) => {
  const here = await desk(t);
  const { jail, d, as } = here;
  const before = await jail.files(), own = await as(["find"]);
  assert.ok(before.length > 1000, "the files were not listed");

  jail.bring(deb(), "/tmp/deskhand.deb");
  await jail.apt("install", "/tmp/deskhand.deb");
  assert.equal(await jail.command(["dpkg", "--verify", "deskhand"]), "");
  await jail.command(["desktop-file-validate", "/usr/share/applications/deskhand.desktop"]);
  assert.match(await jail.command(["cat", "/usr/share/mime/globs2"]), /application\/vnd\.deskhand\.recording\+zip:\*\.deskhand\.zip/, "its type is known");
  assert.equal(await as(["find"]), own, "something of the person's was touched");

  const built = JSON.parse(await as(["deskhand", "version", "--json"]));
  assert.equal(built.commit, output("git", ["rev-parse", "HEAD"], { cwd: tree }).trim());
  assert.equal(JSON.parse(await as(["deskhand-desktop", "version", "--json"])).window, true);
  assert.match(await as(["deskhand", "licenses", "--list"]), /^Deskhand\s+MIT\n/);

  await as(menu);
  const window = await appears(here);
  assert.match(output("xprop", ["-id", window, "WM_CLASS"], { env: d.env }), /"deskhand"/i, "the desktop knows it as the menu's");
  await turn(here, "deskhand");
  await d.picture("package-deb");

  // Started from the menu again, the first one comes forward.
  await as(menu);
  await until("the second start's word", async () => /brought forward/.test(await as(["cat", "/tmp/menu.log"])));
  await until("the second start's end", async () => (await as(["pgrep", "-f", "-x", "/usr/bin/deskhand-desktop"])).trim().split("\n").length === 1);
  assert.equal((await d.windows("^Deskhand$")).length, 1);
  await ends(here);

  await jail.apt("purge", "deskhand");
  assert.deepEqual(await jail.files(), before, "it has left something, or taken something with it");
  await as(["test", "-s", `/home/${person}/.local/share/deskhand/deskhand.db`]); // the person's own stays
});

test("the tarball runs wherever it lies, and after it was moved", async (t) => {
  const here = await desk(t);
  const { jail, as, start } = here;
  jail.bring(tarball(), "/tmp/deskhand.tar.gz");
  await as(["sh", "-c", "mkdir 'my programs' && tar -xzf /tmp/deskhand.tar.gz -C 'my programs'"]);
  const [name] = (await as(["ls", "my programs"])).trim().split("\n");
  start([`./my programs/${name}/bin/deskhand`]);
  await appears(here);
  await turn(here, `./my programs/${name}/bin/deskhand`);
  await ends(here);

  // As the manual says for a menu: the whole of it into ~/.local.
  await as(["sh", "-c", `mv "my programs/${name}" elsewhere && cp -r elsewhere/bin elsewhere/share ~/.local/ && rm -r elsewhere "my programs"`]);
  const entry = `/home/${person}/.local/share/applications/deskhand.desktop`;
  await jail.command(["desktop-file-validate", entry]);
  await as(["sh", "-c", 'PATH="$HOME/.local/bin:$PATH" exec "$@"', "sh", ...menu]);
  await appears(here);
  assert.match(await as([`/home/${person}/.local/bin/deskhand`, "sessions"]), /Demo agent/, "the conversation is there");
  await here.d.picture("package-tarball");
  await ends(here);
});
