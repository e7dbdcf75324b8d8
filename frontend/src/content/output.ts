// The output of a command, for reading: without the codes that steer a terminal.

// CSI sequences (colours, cursor), OSC sequences (titles, links), and other two-character escapes.
// eslint-disable-next-line no-control-regex
const escapes = /\u001b\[[0-?]*[ -/]*[@-~]|\u001b\][^\u0007\u001b]*(?:\u0007|\u001b\\)|\u001b[@-Z\\^_]/g;
// eslint-disable-next-line no-control-regex
const controls = /[\u0000-\u0008\u000b\u000c\u000e-\u001f\u007f]/g;

export function plain(text: string): string {
  return text
    .replace(escapes, '')
    .replaceAll('\r\n', '\n')
    .split('\n')
    .map(overwritten)
    .join('\n')
    .replace(controls, '');
}

/** A progress line that was drawn over itself ends as its last state. */
function overwritten(line: string): string {
  if (!line.includes('\r')) return line;
  return line.split('\r').findLast((part) => part !== '') ?? '';
}

export interface Excerpt {
  text: string;
  /** How many lines are left out at the start. */
  hidden: number;
}

export const mostLines = 200;
export const mostBytes = 64 * 1024;

/** The end of a long output: what went wrong is told last. */
export function excerpt(text: string): Excerpt {
  const lines = text.split('\n');
  let from = Math.max(0, lines.length - mostLines);
  let size = 0;
  for (let index = lines.length - 1; index >= from; index--) {
    size += (lines[index]?.length ?? 0) + 1;
    if (size > mostBytes) from = Math.min(index + 1, lines.length - 1);
  }
  const shown = lines.slice(from).join('\n');
  return { text: shown.slice(-mostBytes), hidden: from };
}
