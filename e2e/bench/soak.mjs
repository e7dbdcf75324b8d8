// Runs Deskhand for hours, and fails when it uses 20 MiB more at the end than at the beginning: several agents stream, others are begun,
// left and put to sleep, conversations are opened and closed, all in a real page. SOAK_MINUTES is the duration (120), SOAK_SURFACE the
// surface (Chromium, or window).
//
// Memory is the PSS of Deskhand's own processes and of the page's (in the window all of them are Deskhand's own). The agents' memory is
// reported beside: their budget limits the number of living agents. The comparison takes the medians of the first and the last samples
// after a warm-up, which fills bounded caches: the ring of events, coloured code, pages of the database. The compared PSS excludes files:
// every other browser that starts or ends on the machine changes the share of a program's own pages.
import assert from "node:assert/strict";
import fs from "node:fs";
import { test } from "node:test";
import { until } from "../browser/desk.mjs";
import { held, pss } from "../pss.mjs";
import { inChromium, inWindow } from "./surface.mjs";

const minutes = Number(process.env.SOAK_MINUTES ?? 120);
const warmUp = Math.min(10, minutes / 4);
const most = 20; // MiB
const pause = (ms) => new Promise((done) => setTimeout(done, ms));
const median = (list) => [...list].sort((a, b) => a - b)[Math.floor((list.length - 1) / 2)];

function files(pid) {
  try {
    return fs.readdirSync(`/proc/${pid}/fd`).length;
  } catch {
    return 0;
  }
}

/** Ends a server as a crash would be looked into, and counts what its goroutines were. */
async function goroutines(desk) {
  const from = desk.log.length;
  desk.server.kill("SIGQUIT");
  await desk.ended;
  desk.server = undefined;
  return (desk.log.slice(from).match(/^goroutine \d+ /gm) ?? []).length;
}

test("a soak", { timeout: (minutes + 30) * 60_000 }, async (t) => {
  const surface = await (process.env.SOAK_SURFACE === "window" ? inWindow : inChromium)(t);
  const { desk } = surface;
  const { chromium } = surface;
  await desk.api("PATCH", "/client/settings", { memoryBudgetMiB: 32 });

  const create = async (title) => (await desk.api("POST", "/client/sessions", { agent: "mock", cwd: desk.work, title })).id;
  const prompt = (id, message) => desk.api("POST", `/client/sessions/${id}/prompt`, { message });
  const idle = (id) => until("the end of a turn", async () => {
    const { phase, turn } = await desk.api("GET", `/client/sessions/${id}`);
    return !turn && phase !== "starting";
  }, 120_000);
  const open = (title) => surface.run((name) => {
    [...document.querySelectorAll("[role=treeitem]")].find((row) => row.textContent.includes(name))?.click();
  }, title);

  /** What stands at the end of a cycle, when nothing streams. */
  const sample = async () => {
    await chromium?.inPage("HeapProfiler.collectGarbage");
    const all = desk.processes().filter(({ command }) => /deskhand|WebKit/.test(command) && !/WebKitWebDriver/.test(command));
    const agents = all.filter(({ command }) => command.includes("demo-agent"));
    const own = all.filter((one) => !agents.includes(one)).map(({ pid }) => pid);
    if (chromium) {
      const { processInfo } = await chromium.send("SystemInfo.getProcessInfo");
      own.push(...processInfo.filter(({ type }) => type === "renderer").map(({ id }) => id));
    }
    const sum = (pids, of) => pids.reduce((total, pid) => total + of(pid), 0);
    const { nodes, jsEventListeners } = chromium ? await chromium.inPage("Memory.getDOMCounters") : { nodes: (await surface.run(() => window.probe.nodes())).nodes };
    const heap = chromium ? (await chromium.inPage("Runtime.getHeapUsage")).usedSize / 1024 / 1024 : undefined;
    return {
      minute: Number(((performance.now() - began) / 60_000).toFixed(1)), own: sum(own, pss), held: sum(own, held), each: own.map((pid) => Math.round(held(pid))), agents: agents.length,
      agentsPss: sum(agents.map(({ pid }) => pid), pss), files: sum(all.map(({ pid }) => pid), files), nodes, listeners: jsEventListeners, heap,
    };
  };

  const began = performance.now();
  const steady = [await create("Steady 1"), await create("Steady 2"), await create("Steady 3")];
  const samples = [];
  for (let cycle = 1; performance.now() - began < minutes * 60_000; cycle++) {
    for (const id of steady) await idle(id);
    await open("Steady 1");
    for (const id of steady) await prompt(id, "stream 300/s 20s");
    const passing = await create(`Passing ${cycle}`);
    await idle(passing);
    await prompt(passing, "markdown diff terminal plan thought");
    for (const title of ["Steady 2", `Passing ${cycle}`, "Steady 3", `Passing ${cycle - 1}`, "Steady 1"]) {
      await pause(3_500);
      await open(title);
    }
    await idle(passing);
    for (const id of steady) await idle(id);
    if (cycle > 3) await desk.api("PATCH", `/client/sessions/${passing}`, { archived: true });
    await pause(1_000);
    const found = await sample();
    samples.push(found);
    console.log(JSON.stringify({ ...found, own: Number(found.own.toFixed(1)), held: Number(found.held.toFixed(1)), agentsPss: Number(found.agentsPss.toFixed(1)), heap: found.heap && Number(found.heap.toFixed(1)) }));
  }

  const warm = samples.filter(({ minute }) => minute >= warmUp);
  assert.ok(warm.length >= 6, "too short for a comparison");
  const few = Math.max(3, Math.floor(warm.length / 8));
  const of = (name) => ({ start: median(warm.slice(0, few).map((one) => one[name])), end: median(warm.slice(-few).map((one) => one[name])), max: Math.max(...samples.map((one) => one[name])) });
  for (const [name, unit] of [["held", "MiB, PSS without files of our own processes and the page"], ["own", "MiB, PSS of them"], ["agentsPss", "MiB, PSS of the agents"], ["heap", "MiB, JavaScript heap"], ["nodes", "DOM nodes"], ["listeners", "listeners in the page"], ["files", "open files of all"]]) {
    const { start, end, max } = of(name);
    if (start !== undefined) console.log(`${start.toFixed(1).padStart(9)} ${end.toFixed(1).padStart(9)} ${max.toFixed(1).padStart(9)}  start, end, most: ${unit}`);
  }
  if (desk.server) {
    const after = await goroutines(desk);
    await desk.start();
    console.log(`${String(after).padStart(9)}  goroutines at the end; ${await goroutines(desk)} of a server that was just started`);
    await desk.gone();
  }
  const { start, end } = of("held");
  assert.ok(end <= start + most, `${(end - start).toFixed(1)} MiB more than at the beginning`);
});
