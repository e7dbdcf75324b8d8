import type { Terminal } from '../api/records';
import { commandLine } from '../content/terminals';
import type { Shell } from './calls';

// What the Terminal tab can show, in one list: the person's terminals, the agent's programs, and output that was too long for its row.

export type Choice =
  | { kind: 'shell'; id: string; shell: Shell }
  | { kind: 'program'; id: string; terminal: Terminal; text: string }
  | { kind: 'output'; id: string; title: string; text: string };

/** What of a conversation is looked through for its programs. */
export interface Told {
  entry: { terminal?: Terminal };
  text: string;
}

/** Programs further back are found in the conversation. */
const mostPrograms = 30;

export const outputId = 'output';

/** Those that run stand before those that have ended, the newest first. */
export function programsOf(items: readonly Told[]): Choice[] {
  const found = items.flatMap(({ entry, text }): Extract<Choice, { kind: 'program' }>[] =>
    entry.terminal
      ? [{ kind: 'program', id: entry.terminal.terminalId, terminal: entry.terminal, text }]
      : [],
  );
  const running = found.filter(({ terminal }) => terminal.running).reverse();
  const ended = found.filter(({ terminal }) => !terminal.running).reverse();
  return [...running, ...ended].slice(0, mostPrograms);
}

const longestName = 60;

/** What a program is called in a list: the beginning of the first line of what was run. */
export function programName(terminal: Terminal): string {
  const line = (commandLine(terminal) ?? terminal.terminalId).split('\n')[0] ?? '';
  return line.length > longestName ? `${line.slice(0, longestName)}…` : line;
}

/** What is shown when the person has chosen nothing, or what they chose has gone. */
export function usual(list: readonly Choice[]): Choice | undefined {
  return (
    list.find((one) => one.kind === 'shell' && one.shell.running) ??
    list.find((one) => one.kind === 'program' && one.terminal.running) ??
    list[0]
  );
}
