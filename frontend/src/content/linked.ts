import type { Run } from './printed';

// The links to files in an output.

/** A part of an output that names an existing file. */
export interface FileLink {
  start: number;
  end: number;
  file: string;
  line: number | undefined;
}

/** A run, or a part of one that is a link. */
export interface Linked extends Run {
  link?: FileLink | undefined;
}

/** Cuts runs at links. A link may have parts of several looks. */
export function linkedRuns(runs: readonly Run[], links: readonly FileLink[]): Linked[] {
  const result: Linked[] = [];
  let at = 0;
  let next = 0;
  for (const run of runs) {
    const end = at + run.text.length;
    for (let from = at; from < end;) {
      while ((links[next]?.end ?? Infinity) <= from) next++;
      const link = links[next];
      const within = link !== undefined && link.start <= from;
      const to = Math.min(end, (within ? link.end : link?.start) ?? end);
      result.push({ ...run, text: run.text.slice(from - at, to - at), ...(within ? { link } : {}) });
      from = to;
    }
    at = end;
  }
  return result;
}
