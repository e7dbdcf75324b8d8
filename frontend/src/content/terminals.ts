import { getContext, setContext } from 'svelte';
import type { Terminal } from '../api/records';
import { quote } from './tool';

// Content of a tool call names a program by its id; what the program writes is an entry of its own. Whoever shows a transcript says
// where to find it.

export interface Program {
  terminal: Terminal;
  text: string;
}

type Find = (id: string) => Program | undefined;

const key = Symbol('terminals');

export function provideTerminals(find: Find): void {
  setContext(key, find);
}

/** Finds nothing where no transcript is shown. */
export function terminals(): Find {
  return getContext<Find | undefined>(key) ?? (() => undefined);
}

/** What was run, in one line: a shell's own line where it is one. */
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
