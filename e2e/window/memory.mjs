// Measures the idle app: the memory of its whole process tree as PSS, in which a page that several processes share counts once;
// what it computes while nobody does anything; and that it starts no process by itself. Run by make measure-memory.
import assert from "node:assert/strict";
import fs from "node:fs";
import { test } from "node:test";
import { Desktop } from "./desktop.mjs";

const budget = 220; // MiB, of the design
const pause = (ms) => new Promise((done) => setTimeout(done, ms));

/** The process and all that descend from it: [{pid, name, pss in MiB, cpu in ms}]. */
function tree(root) {
  const all = [];
  for (const pid of fs.readdirSync("/proc").filter((name) => /^\d+$/.test(name)).map(Number)) {
    try {
      const [, name, rest] = /\((.*)\) (.*)/.exec(fs.readFileSync(`/proc/${pid}/stat`, "latin1"));
      const fields = rest.split(" "); // from the third on
      const pss = /^Pss:\s+(\d+) kB/m.exec(fs.readFileSync(`/proc/${pid}/smaps_rollup`, "latin1"));
      all.push({ pid, name, parent: Number(fields[1]), cpu: (Number(fields[11]) + Number(fields[12])) * 10, pss: Number(pss?.[1] ?? 0) / 1024 });
    } catch { /* it ended while we looked, or is the kernel's */ }
  }
  const found = all.filter(({ pid }) => pid === root);
  for (const one of found) found.push(...all.filter(({ parent }) => parent === one.pid));
  return found;
}

test("the idle app", async (t) => {
  const d = await Desktop.open(t);
  const { pid } = await d.start();
  await pause(20_000); // what the start has begun is over
  const before = tree(pid);
  await pause(10_000);
  const after = tree(pid);

  const total = after.reduce((sum, { pss }) => sum + pss, 0);
  const cpu = (list) => list.reduce((sum, one) => sum + one.cpu, 0);
  for (const { name, pss } of after) console.log(`${pss.toFixed(1).padStart(8)} MiB  ${name}`);
  console.log(`${total.toFixed(1).padStart(8)} MiB  in all; the budget is ${budget}`);
  console.log(`${String(cpu(after) - cpu(before)).padStart(8)} ms   of CPU in ten idle seconds`);
  assert.deepEqual(after.map(({ pid: one }) => one), before.map(({ pid: one }) => one), "the idle app started or ended a process");
});
