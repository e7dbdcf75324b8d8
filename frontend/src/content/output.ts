// Removes terminal control codes from the output of a command.

// CSI sequences (colours, cursor), OSC sequences (titles, links), and other two-character escapes.
const escapes =
  // eslint-disable-next-line no-control-regex
  /\u001b\[[0-?]*[ -/]*[@-~]|\u001b\][^\u0007\u001b]*(?:\u0007|\u001b\\)|\u001b[ -/]+[0-~]|\u001b[@-Z\\^_]/g;
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

/** Returns the last state of a progress line that overwrites itself. */
function overwritten(line: string): string {
  if (!line.includes('\r')) return line;
  return line.split('\r').findLast((part) => part !== '') ?? '';
}
