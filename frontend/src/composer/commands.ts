import type { Command } from '../api/records';

// Completes slash commands while the message begins with a slash and the caret is in its first word.

/** A command of Deskhand itself. Choosing one runs it at once; nothing is sent to the agent. */
export interface Own {
  id: string;
  name: string;
  /** The command's name in the palette. */
  title: string;
  keys: string;
  run: () => void;
}

export interface Completion {
  /** The text after the slash. */
  typed: string;
  /** The agent's commands that match. */
  matches: readonly Command[];
  own: readonly Own[];
}

export function complete(
  text: string,
  caret: number,
  commands: readonly Command[],
  ours: () => readonly Own[] = () => [],
): Completion | undefined {
  const word = /^\/(\S*)/.exec(text);
  if (!word || caret < 1 || caret > word[0].length) return undefined;
  const typed = text.slice(1, caret);
  const wanted = typed.toLowerCase();
  const starts = commands.filter((command) => command.name.toLowerCase().startsWith(wanted));
  const holds = commands.filter(
    (command) => !starts.includes(command) && command.name.toLowerCase().includes(wanted),
  );
  const matches = [...starts, ...holds];
  // A command typed in full is the agent's, even if one of Deskhand's has the same name.
  if (matches.length === 1 && matches[0]?.name === word[1] && caret === word[0].length) return undefined;
  const own = fitting(ours(), wanted);
  return matches.length + own.length > 0 ? { typed, matches, own } : undefined;
}

/** Matches the begin of words only, because a message may also begin with a path. */
function fitting(ours: readonly Own[], wanted: string): readonly Own[] {
  const named = ours.filter((one) => one.name.startsWith(wanted));
  const words = (one: Own) => `${one.name.replaceAll('-', ' ')} ${one.title}`.toLowerCase().split(/\s+/);
  const other = ours.filter(
    (one) => !named.includes(one) && words(one).some((word) => word.startsWith(wanted)),
  );
  return [...named, ...other];
}

/** Returns the text with the typed word replaced by the command, and the new caret position. */
export function accept(text: string, command: Command): { text: string; caret: number } {
  const head = `/${command.name} `;
  return { text: head + without(text), caret: head.length };
}

/** Returns the text without the typed word. */
export function without(text: string): string {
  return text.replace(/^\/\S*\s?/, '');
}
