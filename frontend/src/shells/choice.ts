import type { Shell, Terminal } from '../api/records';
import { commandLine } from '../content/terminals';

// The entries of the Terminal tab's list: the person's terminals, the agent's terminals, and an output that was too long for its row.

export type Choice =
  | { kind: 'shell'; id: string; shell: Shell }
  | { kind: 'program'; id: string; terminal: Terminal; text: string; entry: string }
  | { kind: 'output'; id: string; title: string; text: string };

/** The part of a transcript item that the list reads. */
export interface Told {
  entry: { id: string; terminal?: Terminal };
  text: string;
}

/** The largest number of listed programs. Older programs are in the transcript. */
const mostPrograms = 30;

export const outputId = 'output';

/** Returns the agent's terminals, running before ended, the newest first. */
export function programsOf(items: readonly Told[]): Choice[] {
  const found = items.flatMap(({ entry, text }): Extract<Choice, { kind: 'program' }>[] =>
    entry.terminal
      ? [
          {
            kind: 'program',
            id: entry.terminal.terminalId,
            terminal: entry.terminal,
            text,
            entry: entry.id,
          },
        ]
      : [],
  );
  const running = found.filter(({ terminal }) => terminal.running).reverse();
  const ended = found.filter(({ terminal }) => !terminal.running).reverse();
  return [...running, ...ended].slice(0, mostPrograms);
}

const longestName = 60;

/** Returns the name of a terminal in the list: the begin of its command's first line. */
export function programName(terminal: Terminal): string {
  const line = (commandLine(terminal) ?? terminal.terminalId).split('\n')[0] ?? '';
  return line.length > longestName ? `${line.slice(0, longestName)}…` : line;
}

/** Returns the default entry, for when the person has chosen none or the chosen entry has gone. */
export function usual(list: readonly Choice[]): Choice | undefined {
  return (
    list.find((one) => one.kind === 'shell' && one.shell.running) ??
    list.find((one) => one.kind === 'program' && one.terminal.running) ??
    list[0]
  );
}
