import { unmarked } from '../ui/format';
import type { ToolCall } from '../api/records';
import { isObject, readContent, type Content, type Json } from './blocks';
import { diffTexts, readPatch, type Diff } from './diff';
import { lineHides } from './reveal';

// Reads tool calls, whose fields agents fill in differently.

export type Part =
  | { kind: 'content'; content: Content }
  | { kind: 'diff'; path: string; created: boolean; diff: Diff; clipped: boolean }
  | { kind: 'terminal'; output: string; id: string }
  | { kind: 'raw'; value: unknown };

const diffs = new WeakMap<object, Diff>();

function diffOf(item: Json): Diff {
  let diff = diffs.get(item);
  if (!diff) {
    const patch = item['patch'];
    if (isObject(patch) && typeof patch['text'] === 'string') diff = readPatch(patch['text']);
    else diff = diffTexts(str(item['oldText']), str(item['newText']));
    diffs.set(item, diff);
  }
  return diff;
}

/** Reports whether a record holds only a part of an edit, so that its lines cannot be counted. */
function isClipped(item: Json): boolean {
  const patch = item['patch'];
  const texts = [item['oldText'], item['newText'], isObject(patch) ? patch['text'] : undefined];
  return texts.some((text) => str(text).endsWith(' more bytes, kept in the journal'));
}

/** Reports whether an edit adds invisible characters. */
export function bringsHidden(tool: ToolCall): boolean {
  return parts(tool).some(
    (part) =>
      part.kind === 'diff' && part.diff.lines.some((line) => line.kind === 'add' && lineHides(line.text)),
  );
}

function str(value: unknown): string {
  return typeof value === 'string' ? value : '';
}

export function parts(tool: ToolCall): Part[] {
  return (tool.content ?? []).map((item): Part => {
    if (!isObject(item)) return { kind: 'raw', value: item };
    switch (item['type']) {
      case 'content':
        return { kind: 'content', content: readContent(item['content']) };
      case 'diff': {
        const path = str(item['path']) || str(firstChange(item)['path']);
        if (!path && typeof item['newText'] !== 'string') return { kind: 'raw', value: item };
        return {
          kind: 'diff',
          path,
          created: item['oldText'] === null || item['oldText'] === undefined,
          diff: diffOf(item),
          clipped: isClipped(item),
        };
      }
      case 'terminal':
        return { kind: 'terminal', id: str(item['terminalId']), output: str(item['output']) };
      default:
        return { kind: 'raw', value: item };
    }
  });
}

function firstChange(item: Json): Json {
  const changes: unknown = item['changes'];
  const first: unknown = Array.isArray(changes) ? changes[0] : undefined;
  return isObject(first) ? first : {};
}

/** Returns the numbers of lines that all edits of a call add and remove; undefined where an edit is incomplete. */
export function totals(tool: ToolCall): { added: number; removed: number } | undefined {
  let added = 0;
  let removed = 0;
  let any = false;
  for (const part of parts(tool)) {
    if (part.kind !== 'diff') continue;
    if (part.clipped) return undefined;
    any = true;
    added += part.diff.added;
    removed += part.diff.removed;
  }
  return any ? { added, removed } : undefined;
}

/** Returns the whole command line of a call that runs a command. */
export function command(tool: ToolCall): string | undefined {
  return commandField(tool)?.[1];
}

/** Returns the name of the field with the command line, and the command line. */
function commandField({ rawInput: input }: ToolCall): readonly [string, string] | undefined {
  if (!isObject(input)) return undefined;
  for (const key of ['command', 'cmd', 'script']) {
    const value = input[key];
    if (typeof value === 'string' && value !== '') return [key, value];
    if (Array.isArray(value) && value.length > 0 && value.every((arg) => typeof arg === 'string')) {
      return [key, value.map(quote).join(' ')];
    }
  }
  return undefined;
}

/** Returns the rest of a command's input, such as arguments, variables and rights, without values that have no effect. */
export function besideCommand(tool: ToolCall, cwd: string): Json | undefined {
  const line = commandField(tool);
  if (!line || !isObject(tool.rawInput)) return undefined;
  const rest = Object.entries(tool.rawInput).filter(
    ([key, value]) =>
      ![line[0], 'description', 'timeout'].includes(key) &&
      !['null', 'false', '""', '[]', '{}'].includes(JSON.stringify(value)) &&
      !(['cwd', 'workdir'].includes(key) && value === cwd),
  );
  return rest.length > 0 ? Object.fromEntries(rest) : undefined;
}

/** Quotes an argument for a shell, so that a reader sees its end. */
export function quote(arg: string): string {
  return /^[\w@%+=:,./-]+$/.test(arg) ? arg : `'${arg.replaceAll("'", `'\\''`)}'`;
}

/** Returns a path relative to cwd where the path is inside; otherwise the whole path. */
export function relative(path: string, cwd: string): string {
  const root = cwd.replace(/[/\\]+$/, '');
  if (path === root) return '.';
  const next = path.charAt(root.length);
  return root !== '' && path.startsWith(root) && (next === '/' || next === '\\')
    ? path.slice(root.length + 1)
    : path;
}

interface Target {
  text: string;
  mono: boolean;
  /** The text is the agent's title, which usually contains the verb already. */
  fromTitle: boolean;
}

/** Returns the object of a call, such as a path or a command, in one line. */
export function target(tool: ToolCall, cwd: string): Target {
  const line = command(tool);
  if (line !== undefined && (tool.kind === 'execute' || tool.kind === 'other')) {
    return { text: line, mono: true, fromTitle: false };
  }
  if (['read', 'edit', 'delete', 'move'].includes(tool.kind)) {
    const diff = parts(tool).find((part) => part.kind === 'diff');
    const place = tool.locations?.[0];
    const path = place?.path ?? (diff?.kind === 'diff' ? diff.path : '');
    if (path) {
      const more = new Set(tool.locations?.map((one) => one.path)).size - 1;
      // Line 1 is the default and is not shown.
      const at = place?.line && place.line > 1 && more < 1 ? `:${place.line}` : '';
      return { text: relative(path, cwd) + at + (more > 0 ? ` +${more}` : ''), mono: true, fromTitle: false };
    }
  }
  const input = isObject(tool.rawInput) ? tool.rawInput : {};
  const wanted =
    tool.kind === 'search' ? ['pattern', 'query', 'q'] : tool.kind === 'fetch' ? ['url', 'query'] : [];
  for (const key of wanted) {
    const value = input[key];
    if (typeof value === 'string' && value !== '') return { text: value, mono: true, fromTitle: false };
  }
  const title = tool.title || tool.name || tool.toolCallId;
  const text = unmarked(title);
  return { text, mono: text !== title, fromTitle: true };
}

/** Returns the text result of a command or tool from the raw output, for calls without content. */
export function rawText(output: unknown): string | undefined {
  if (typeof output === 'string') return output;
  if (!isObject(output)) return undefined;
  for (const key of ['output', 'formatted_output', 'aggregated_output', 'text']) {
    const value = output[key];
    if (typeof value === 'string') return value;
  }
  const both = [output['stdout'], output['stderr']].filter(
    (s): s is string => typeof s === 'string' && s !== '',
  );
  return both.length > 0 ? both.join('\n') : undefined;
}

/** Returns the exit code of an execute call, from the fields in use. */
export function exitCode(tool: ToolCall): number | undefined {
  const output = tool.rawOutput;
  if (!isObject(output)) return undefined;
  for (const key of ['exitCode', 'exit_code', 'code']) {
    const value = output[key];
    if (typeof value === 'number') return value;
  }
  return undefined;
}

/** Merges a request's call into its entry's call. The request's fields win. */
export function merge(entry: ToolCall | undefined, asked: ToolCall | undefined): ToolCall | undefined {
  if (!entry || !asked) return asked ?? entry;
  return {
    ...entry,
    title: asked.title || entry.title,
    kind: asked.kind && asked.kind !== 'other' ? asked.kind : entry.kind,
    ...(asked.content?.length ? { content: asked.content } : {}),
    ...(asked.locations?.length ? { locations: asked.locations } : {}),
    ...(asked.rawInput === undefined || asked.rawInput === null ? {} : { rawInput: asked.rawInput }),
  };
}

/** Returns the locations of a call without the directory itself, which some agents list for every command. */
export function placesBelow(tool: ToolCall, cwd: string): NonNullable<ToolCall['locations']> {
  return (tool.locations ?? []).filter((place) => place.path.replace(/\/+$/, '') !== cwd.replace(/\/+$/, ''));
}
