// Runs the test files in lanes. A lane is a process that runs its files one after the other with one Chromium, whose start takes as long as
// a test. Each file goes to the lane that has the least to do, the largest file first: the size of a file stands for the time of its tests.
// A file can be run alone, too: node --test browser/queue.test.mjs.
import fs from "node:fs";
import path from "node:path";

const names = fs.readdirSync(import.meta.dirname);
const size = (name) => fs.statSync(path.join(import.meta.dirname, name)).size;
const lanes = names.filter((name) => /^lane-\d\.mjs$/.test(name)).map((name) => ({ name, files: [], size: 0 }));
for (const file of names.filter((name) => name.endsWith(".test.mjs")).sort((a, b) => size(b) - size(a))) {
  const lane = lanes.reduce((least, one) => (one.size < least.size ? one : least));
  lane.files.push(file);
  lane.size += size(file);
}
for (const file of lanes.find(({ name }) => name === path.basename(process.argv[1])).files) await import(`./${file}`);
