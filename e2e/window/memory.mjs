// Measures the idle app: the memory of its whole process tree as PSS, in which a page that several processes share counts once;
// what it computes while nobody does anything; and that it starts no process by itself. Beside it, in the same run, what an empty page in
// a window of WebKit takes: most of either are libraries, and how much of those a machine loads differs. Run by make measure-memory.
import assert from "node:assert/strict";
import fs from "node:fs";
import { test } from "node:test";
import { held, pss } from "../pss.mjs";
import { Desktop, pause, until } from "./desktop.mjs";

const budget = 220; // MiB, of the design
const share = 0.3; // % of one core that the idle app may take
const settled = 60_000; // what the start has begun is over: garbage of it is looked at half a minute later
const rest = 60_000;

/** What each thread of a process has computed, in ms, by its number and name: to the nanosecond, where /proc/PID/stat counts in hundredths. */
function threads(pid) {
  const found = new Map();
  for (const tid of fs.readdirSync(`/proc/${pid}/task`)) {
    const name = fs.readFileSync(`/proc/${pid}/task/${tid}/comm`, "utf8").trim();
    const [ran] = fs.readFileSync(`/proc/${pid}/task/${tid}/schedstat`, "utf8").split(" ");
    found.set(`${tid} ${name}`, Number(ran) / 1e6);
  }
  return found;
}

/** The process and all that descend from it: [{pid, name, pss and own (without files) in MiB, cpu by thread in ms}]. */
function tree(root) {
  const all = [];
  for (const pid of fs.readdirSync("/proc").filter((name) => /^\d+$/.test(name)).map(Number)) {
    try {
      const [, name, rest] = /\((.*)\) (.*)/.exec(fs.readFileSync(`/proc/${pid}/stat`, "latin1"));
      const fields = rest.split(" "); // from the third on
      all.push({ pid, name, parent: Number(fields[1]), cpu: threads(pid), pss: pss(pid), own: held(pid) });
    } catch { /* it ended while we looked, or is the kernel's */ }
  }
  const found = all.filter(({ pid }) => pid === root);
  for (const one of found) found.push(...all.filter(({ parent }) => parent === one.pid));
  return found;
}

function tell(list, what) {
  for (const { name, pss, own } of list) console.log(`${pss.toFixed(1).padStart(8)} MiB  ${name}, ${own.toFixed(1)} without files`);
  const sum = (of) => list.reduce((total, one) => total + one[of], 0);
  console.log(`${sum("pss").toFixed(1).padStart(8)} MiB  in all, ${sum("own").toFixed(1)} without files: ${what}`);
}

test("the idle app", async (t) => {
  const d = await Desktop.open(t);
  const floor = d.empty();
  await pause(10_000);
  assert.equal(floor.exitCode, null, floor.said);
  const least = tree(floor.pid);
  assert.equal(least.length, 3, "WebKit's processes are not there");
  tell(least, "an empty page in a window of WebKit");
  floor.kill();
  await floor.ended;
  // Its processes go by themselves, and share their libraries until then.
  await until("its processes to end", () => least.every(({ pid }) => !fs.existsSync(`/proc/${pid}`)));

  const { pid } = await d.start();
  await pause(settled);
  const before = tree(pid);
  await pause(rest);
  const after = tree(pid);

  tell(after, `the idle app; the budget is ${budget}`);
  let all = 0;
  for (const one of after) {
    // A thread that ended meanwhile is left out, and what it has computed with it.
    const was = before.find((other) => other.pid === one.pid)?.cpu ?? new Map();
    const list = [...one.cpu].map(([name, ms]) => ({ name: name.replace(/^\d+ /, ""), ms: ms - (was.get(name) ?? 0) }));
    const sum = list.reduce((total, { ms }) => total + ms, 0);
    all += sum;
    console.log(`${sum.toFixed(0).padStart(8)} ms   ${one.name}: ${list.filter(({ ms }) => ms >= 1).sort((a, b) => b.ms - a.ms).map(({ name, ms }) => `${name} ${ms.toFixed(0)}`).join(", ")}`);
  }
  const percent = (100 * all) / rest;
  console.log(`${all.toFixed(0).padStart(8)} ms   of CPU in ${rest / 1000} idle seconds, ${percent.toFixed(2)} % of a core; the budget is ${share} %: ${percent <= share ? "met" : "MISSED"}`);
  assert.deepEqual(after.map(({ pid: one }) => one), before.map(({ pid: one }) => one), "the idle app started or ended a process");
});
