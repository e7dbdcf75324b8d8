import type { Command } from '../api/records';

// Completion of slash commands: while the first word begins with a slash and the caret stands in it.

/** A command of Deskhand's own. It is done at once, and nothing of it is sent. */
export interface Own {
  id: string;
  name: string;
  /** What it is called elsewhere. */
  title: string;
  keys: string;
  run: () => void;
}

export interface Completion {
  /** What is typed after the slash. */
  typed: string;
  /** The agent's. */
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
  // Typed in full: nothing left to complete, and it is the agent's whatever ours are called.
  if (matches.length === 1 && matches[0]?.name === word[1] && caret === word[0].length) return undefined;
  const own = fitting(ours(), wanted);
  return matches.length + own.length > 0 ? { typed, matches, own } : undefined;
}

/** Only what a word of it begins with: a path that a message begins with is no command. */
function fitting(ours: readonly Own[], wanted: string): readonly Own[] {
  const named = ours.filter((one) => one.name.startsWith(wanted));
  const words = (one: Own) => `${one.name.replaceAll('-', ' ')} ${one.title}`.toLowerCase().split(/\s+/);
  const other = ours.filter(
    (one) => !named.includes(one) && words(one).some((word) => word.startsWith(wanted)),
  );
  return [...named, ...other];
}

/** The text with the command in place of the word that was typed, and where the caret goes. */
export function accept(text: string, command: Command): { text: string; caret: number } {
  const head = `/${command.name} `;
  return { text: head + without(text), caret: head.length };
}

/** The text without the word that was typed. */
export function without(text: string): string {
  return text.replace(/^\/\S*\s?/, '');
}
