import type { Command } from '../api/records';

// Completion of slash commands: while the first word begins with a slash and the caret stands in it.

export interface Completion {
  /** What is typed after the slash. */
  typed: string;
  matches: Command[];
}

export function complete(text: string, caret: number, commands: readonly Command[]): Completion | undefined {
  const word = /^\/(\S*)/.exec(text);
  if (!word || caret < 1 || caret > word[0].length) return undefined;
  const typed = text.slice(1, caret);
  const wanted = typed.toLowerCase();
  const starts = commands.filter((command) => command.name.toLowerCase().startsWith(wanted));
  const holds = commands.filter(
    (command) => !starts.includes(command) && command.name.toLowerCase().includes(wanted),
  );
  const matches = [...starts, ...holds];
  if (matches.length === 0) return undefined;
  // Typed in full: nothing left to complete.
  if (matches.length === 1 && matches[0]?.name === word[1] && caret === word[0].length) return undefined;
  return { typed, matches };
}

/** The text with the command in place of the word that was typed, and where the caret goes. */
export function accept(text: string, command: Command): { text: string; caret: number } {
  const rest = text.replace(/^\/\S*\s?/, '');
  const head = `/${command.name} `;
  return { text: head + rest, caret: head.length };
}
