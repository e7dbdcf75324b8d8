// A clean Debian in a directory, in which packages are installed and started as on a person's machine. It is made by debootstrap once and
// kept; each test has a layer of its own above it, which goes with the test. Everything that runs in it is in one process namespace, so
// that nothing is left when its first process ends; the mounts are in one, too, and the machine never sees them.
import assert from "node:assert/strict";
import { execFile, execFileSync, spawn } from "node:child_process";
import { createHash } from "node:crypto";
import fs from "node:fs";
import os from "node:os";
import path from "node:path";
import { promisify } from "node:util";
import { until } from "../place.mjs";

const run = promisify(execFile);
const kept = path.resolve(import.meta.dirname, "../../build/bin/jail");
const suite = "bookworm";

// What a desktop has and the package does not ask for: what starts programs from its menu, what reads menus and types, its bus. The
// network of the machine is the jail's, for apt.
const desktop = ["libgtk-3-bin", "desktop-file-utils", "shared-mime-info", "hicolor-icon-theme", "dbus-daemon", "procps"];

const apt = ["env", "DEBIAN_FRONTEND=noninteractive", "apt-get", "-q", "-y", "--no-install-recommends"];

/** The person in the jail. */
export const person = "person";
const uid = 1000;

export class Jail {
  /**
   * Opens a jail for one test.
   * @param t the test; the jail ends with it
   * @param depends what is to be installed already, as Debian's packages name what they depend on
   */
  static async open(t, depends) {
    assert.equal(process.getuid(), 0, "a clean Debian can be made by root alone: sudo make test-package");
    const below = base(depends);
    const jail = new Jail();
    jail.dir = fs.mkdtempSync(path.join(os.tmpdir(), "deskhand-jail-"));
    jail.root = path.join(jail.dir, "root");
    for (const name of ["root", "upper", "work"]) fs.mkdirSync(path.join(jail.dir, name));
    fs.chmodSync(jail.dir, 0o755);
    fs.chmodSync(path.join(jail.dir, "upper"), 0o755);
    t.after(() => jail.close());
    jail.#enter(`mount -t overlay overlay -o lowerdir=${below},upperdir=${jail.dir}/upper,workdir=${jail.dir}/work ${jail.root}`);
    // The first process says that it is there through a file: its number, as the machine counts.
    jail.pid = await until("the jail", () => {
      assert.equal(jail.first.exitCode, null, `the jail ended: ${jail.said}`);
      const [child] = fs.readFileSync(`/proc/${jail.first.pid}/task/${jail.first.pid}/children`, "utf8").split(" ");
      return fs.existsSync(path.join(jail.dir, "ready")) && child;
    });
    await jail.command(["useradd", "--create-home", "--uid", String(uid), "--shell", "/bin/bash", person]);
    await jail.command(["install", "-d", "-m", "700", "-o", person, `/run/user/${uid}`]);
    return jail;
  }

  /** Makes the first process, a shell: it takes leave of every process whose parent has ended, as an init does. */
  #enter(mount) {
    const script = `set -e; mount --make-rprivate /; ${mount}; ${mounts(this.root)}; touch ${this.dir}/ready; while :; do sleep 0.1; done`;
    this.said = "";
    this.first = spawn("unshare", ["--mount", "--pid", "--fork", "--kill-child", "sh", "-c", script], { stdio: ["ignore", "ignore", "pipe"] });
    this.first.stderr.on("data", (data) => (this.said += data));
    this.ended = new Promise((done) => this.first.on("exit", done));
  }

  /** The command line that runs a command in the jail: as root, or with the person's environment as the person. */
  inside(args, { env } = {}) {
    const user = env ? ["--userspec", `${uid}:${uid}`] : [];
    const variables = Object.entries(env ?? { HOME: "/root" }).map(([name, value]) => `${name}=${value}`);
    const at = env?.HOME ?? "/root";
    return ["nsenter", "--target", this.pid, "--mount", "--pid", "/usr/sbin/chroot", ...user, this.root, "env", "-i",
      "PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin", "LANG=C.UTF-8", ...variables, "sh", "-c", 'cd "$0" && exec "$@"', at, ...args];
  }

  /** Runs a command to its end and gives what it wrote. */
  async command(args, options) {
    const [file, ...rest] = this.inside(args, options);
    const { stdout } = await run(file, rest, { maxBuffer: 1 << 28 });
    return stdout;
  }

  /** Installs or removes packages, with apt. */
  apt(...args) {
    return this.command([...apt, ...args]);
  }

  /** Puts a file of the machine's into the jail. */
  bring(file, at) {
    execFileSync("nsenter", ["--target", this.pid, "--mount", "cp", file, path.join(this.root, at)]);
  }

  /** Every file of the system, without what packages may leave by Debian's own rules: apt's and dpkg's records, logs, caches. */
  async files() {
    const list = await this.command(["find", "/", "-xdev", "-not", "-type", "d", "-o", "-type", "d", "-empty"]);
    return list.split("\n").filter((file) => file && !/^\/(proc|sys|dev|run|tmp|root|home)(\/|$)|^\/var\/(lib\/(dpkg|apt)|log|cache)\//.test(file)).sort();
  }

  async close() {
    this.first.kill("SIGKILL");
    await this.ended;
    fs.rmSync(this.dir, { recursive: true, force: true });
  }
}

const mounts = (root) =>
  [`mount -t proc proc ${root}/proc`, `mount --rbind /sys ${root}/sys`, `mount --rbind /dev ${root}/dev`, `mount -t tmpfs tmpfs ${root}/run`,
    `mount --bind /tmp/.X11-unix ${root}/tmp/.X11-unix`].join("; ").replace("mount --bind", `mkdir -p -m 1777 ${root}/tmp/.X11-unix /tmp/.X11-unix; mount --bind`);

/** The system that all jails lie above. */
function base(depends) {
  const recipe = createHash("sha256").update(JSON.stringify([suite, desktop, depends])).digest("hex").slice(0, 12);
  const dir = path.join(kept, recipe);
  if (fs.existsSync(dir)) return dir;
  fs.rmSync(kept, { recursive: true, force: true });
  fs.mkdirSync(kept, { recursive: true });
  const raw = dir + ".raw";
  const say = { stdio: ["ignore", "ignore", "inherit"] };
  execFileSync("debootstrap", ["--variant=minbase", suite, raw], say);
  const sources = "/etc/apt/sources.list.d/debian.sources"; // it has the updates for security, too
  if (fs.existsSync(sources)) {
    fs.copyFileSync(sources, path.join(raw, sources));
    fs.rmSync(path.join(raw, "etc/apt/sources.list"));
  }
  // Nothing is started where there is no system that runs, and no service is kept.
  fs.writeFileSync(path.join(raw, "usr/sbin/policy-rc.d"), "#!/bin/sh\nexit 101\n", { mode: 0o755 });
  const install = [`chroot ${raw} ${apt.join(" ")} update`, `chroot ${raw} ${apt.join(" ")} install ${desktop.join(" ")}`,
    `chroot ${raw} ${apt.join(" ")} satisfy '${depends}'`, `chroot ${raw} apt-get clean`];
  execFileSync("unshare", ["--mount", "--pid", "--fork", "--kill-child", "sh", "-ec", `mount --make-rprivate /; mount -t proc proc ${raw}/proc; ${install.join("; ")}`], say);
  fs.renameSync(raw, dir);
  return dir;
}
