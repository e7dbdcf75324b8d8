// Collects figures, and prints them as a table with the goals of the design beside them when the file of measurements ends.
import fs from "node:fs";
import os from "node:os";
import path from "node:path";
import { after } from "node:test";

const goals = {
  open: ["click to the first paint of 20,000 turns", "ms", 250],
  open_elements: ["elements in the page then", "", 3000],
  open_nodes: ["nodes of every kind (texts, comments)", ""],
  cold: ["start of the page to that paint", "ms", 250],
  up_worst: ["scrolling up through it, longest frame", "ms", 50],
  up_p99: ["99 of 100 frames", "ms"],
  up_over: ["frames over 50 ms", "", 0],
  up_elements: ["most elements meanwhile", "", 3000],
  up_blank: ["frames in which a part was blank", "", 0],
  up_jumps: ["frames in which the text jumped", "", 0],
  down_worst: ["scrolling down again, longest frame", "ms", 50],
  down_p99: ["99 of 100 frames", "ms"],
  down_over: ["frames over 50 ms", "", 0],
  down_elements: ["most elements meanwhile", "", 3000],
  down_blank: ["frames in which a part was blank", "", 0],
  down_jumps: ["frames in which the text jumped", "", 0],
  jump: ["click on what a search found to its paint", "ms", 250],
  tail: ["back to the end", "ms", 250],
  stream_worst: ["1,000 chunks/s, longest frame", "ms", 50],
  stream_p99: ["99 of 100 frames", "ms"],
  stream_median: ["half of the frames", "ms"],
  stream_over: ["frames over 50 ms", "", 0],
  stream_frames: ["frames in all", ""],
  stream_elements: ["most elements meanwhile", ""],
};

const figures = new Map();

export function add(key, value) {
  figures.set(key, [...(figures.get(key) ?? []), value]);
}

const load = () => os.loadavg()[0].toFixed(1);
const before = load();

/** Processor time since the start of the machine, and what of it its host gave to others (Linux; proc_stat(5), "steal"). */
export function processor() {
  try {
    const fields = /^cpu +(.*)$/m.exec(fs.readFileSync("/proc/stat", "latin1"))[1].split(" ").map(Number);
    return { all: fields.slice(0, 8).reduce((sum, one) => sum + one, 0), stolen: fields[7] };
  } catch {
    return { all: 1, stolen: 0 };
  }
}

/** How much of the time since a moment the host of a virtual machine gave to others, in percent: frames that nobody could have drawn. */
export function stolenSince(start) {
  const now = processor();
  return Math.round((100 * (now.stolen - start.stolen)) / Math.max(1, now.all - start.all));
}

const began = processor();

after(() => {
  if (figures.size === 0) return;
  const lines = [["what", "unit", "median", "worst", "goal"]];
  const stored = [];
  for (const [key, values] of figures) {
    const [surface, name] = key.split(".");
    const [what, unit, goal] = goals[name] ?? [name, ""];
    const sorted = [...values].sort((a, b) => a - b);
    const median = Math.round(sorted[Math.floor((sorted.length - 1) / 2)]);
    const worst = Math.round(sorted.at(-1));
    // A person sees a single long frame: times are judged by the median of the rounds, frames and elements by the worst round.
    const judged = /_(over|worst|blank|jumps|elements)$/.test(name) ? worst : median;
    const verdict = goal === undefined ? "" : `<= ${goal}, ${judged <= goal ? "met" : "MISSED"}`;
    lines.push([`${surface}: ${what}`, unit, String(median), String(worst), verdict]);
    stored.push({ key, what, unit, goal, median, worst, values });
  }
  const widths = lines[0].map((_, at) => Math.max(...lines.map((line) => line[at].length)));
  for (const line of lines) console.log(line.map((cell, at) => (at > 0 && at < 4 ? cell.padStart(widths[at]) : cell.padEnd(widths[at]))).join("  ").trimEnd());
  console.log(`Load of the machine (1 minute, ${os.cpus().length} cores): ${before} before, ${load()} after, this included; ${stolenSince(began)} % of its time was taken by its host.`);
  const file = process.env.BENCH_JSON ?? path.join(import.meta.dirname, "../../build/bin/bench-ui.json");
  const known = fs.existsSync(file) ? JSON.parse(fs.readFileSync(file, "utf8")) : {};
  for (const one of stored) known[one.key] = { ...one, at: new Date().toISOString(), load: [before, load()], stolen: stolenSince(began) };
  fs.mkdirSync(path.dirname(file), { recursive: true });
  fs.writeFileSync(file, JSON.stringify(known, null, 2) + "\n");
});
