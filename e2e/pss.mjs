// The memory of a process in MiB, as PSS: a page that several share counts once. 0 of a process that has ended.
import fs from "node:fs";

export const pss = (pid) => field(pid, "Pss");

/** The same without the pages of files: of a program's own pages every other process that has them takes or leaves a part. */
export const held = (pid) => pss(pid) - field(pid, "Pss_File");

function field(pid, name) {
  try {
    return Number(new RegExp(`^${name}:\\s+(\\d+) kB`, "m").exec(fs.readFileSync(`/proc/${pid}/smaps_rollup`, "latin1"))[1]) / 1024;
  } catch {
    return 0;
  }
}
