import { getContext, setContext } from 'svelte';
import type { Terminal } from '../api/records';
import { quote } from './tool';

// A tool call refers to a terminal by its id; the terminal's output is an entry of its own. The component that shows the transcript
// provides the search.

export interface Program {
  terminal: Terminal;
  text: string;
  /** The id of the terminal's entry. */
  entry?: string;
}

type Find = (id: string) => Program | undefined;

const key = Symbol('terminals');

export function provideTerminals(find: Find): void {
  setContext(key, find);
}

/** Outside a transcript the search finds nothing. */
export function terminals(): Find {
  return getContext<Find | undefined>(key) ?? (() => undefined);
}

/** Returns the command of a terminal in one line. For a shell that is the shell's own command line. */
export function commandLine(terminal: Terminal): string | undefined {
  if (!terminal.command) return undefined;
  const args = terminal.args ?? [];
  const name = terminal.command.replace(/^.*[/\\]/, '').replace(/\.exe$/i, '');
  const [flag, script] = args;
  if (
    ['sh', 'bash', 'zsh', 'dash'].includes(name) &&
    args.length === 2 &&
    /^-l?c$/.test(flag ?? '') &&
    script
  )
    return script;
  return [terminal.command, ...args].map(quote).join(' ');
}
