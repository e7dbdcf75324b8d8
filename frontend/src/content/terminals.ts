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

/** The number of lines, and of characters, of the begin of a long output that are shown. */
const headLines = 30;
const headLength = 16 * 1024;

/** Returns the first lines of an output. A last line that is cut is left out. */
export function headOf(text: string): string {
  let end = 0;
  for (let n = 0; n < headLines; n++) {
    const next = text.indexOf('\n', end) + 1;
    if (next === 0 || next > headLength) break;
    end = next;
  }
  return text.slice(0, end);
}
