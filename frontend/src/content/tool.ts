import { unmarked } from '../ui/format';
import type { ToolCall } from '../api/records';
import { isObject, readContent, type Content, type Json } from './blocks';
import { diffTexts, readPatch, type Diff } from './diff';
import type { Gap } from './outputs';
import { lineHides } from './reveal';

// Reads tool calls, whose fields agents fill in differently.

export type Part =
  | { kind: 'content'; content: Content; path: string; gap: Gap | undefined }
  | { kind: 'diff'; path: string; created: boolean; diff: Diff; clipped: boolean }
  | { kind: 'session'; id: string }
  | { kind: 'terminal'; output: string; id: string; path: string; gap: Gap | undefined }
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

/** The end of a text that was cut before projection 12. */
const oldMark = /\n… (\d+) more bytes, kept in the journal$/;

/** Returns where bytes are left out of a text of a call, and the text without a mark. path is a JSON pointer in the call. */
export function gapOf(tool: ToolCall, path: string, text: string): { text: string; gap: Gap | undefined } {
  const cut = tool.cut?.find((one) => one.path === path);
  if (cut) return { text, gap: cut };
  const old = text.endsWith('kept in the journal') ? oldMark.exec(text) : null;
  if (!old) return { text, gap: undefined };
  return { text: text.slice(0, old.index), gap: { at: old.index, bytes: Number(old[1]), lines: 0 } };
}

/** Returns a copy of a value in which a mark stands where bytes are left out of a text. */
export function marked(tool: ToolCall, path: string, value: unknown): unknown {
  if (!tool.cut?.some((cut) => cut.path.startsWith(path))) return value;
  if (typeof value === 'string') {
    const { gap } = gapOf(tool, path, value);
    if (!gap) return value;
    return `${value.slice(0, gap.at)}\n… ${gap.bytes} bytes …\n${value.slice(gap.at)}`;
  }
  if (Array.isArray(value)) return value.map((one, n) => marked(tool, `${path}/${n}`, one));
  if (!isObject(value)) return value;
  return Object.fromEntries(
    Object.entries(value).map(([name, one]) => [
      name,
      marked(tool, `${path}/${name.replaceAll('~', '~0').replaceAll('/', '~1')}`, one),
    ]),
  );
}

/** Returns an edit without the marks of texts that were cut, and whether there were any. */
function unclipped(tool: ToolCall, n: number, item: Json): { item: Json; clipped: boolean } {
  let clipped = tool.cut?.some((cut) => cut.path.startsWith(`/content/${n}/`)) ?? false;
  let held = unmarkedItems.get(item);
  if (!held) {
    const copy = { ...item };
    for (const name of ['oldText', 'newText']) {
      const value = item[name];
      if (typeof value !== 'string' || !oldMark.test(value)) continue;
      copy[name] = value.replace(oldMark, '\n');
      held = copy;
    }
    const patch = item['patch'];
    if (isObject(patch) && typeof patch['text'] === 'string' && oldMark.test(patch['text']))
      held = { ...copy, patch: { ...patch, text: patch['text'].replace(oldMark, '\n') } };
    unmarkedItems.set(item, (held ??= item));
  }
  clipped ||= held !== item;
  return { item: held, clipped };
}

const unmarkedItems = new WeakMap<object, Json>();

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
  return (tool.content ?? []).map((item: unknown, n): Part => {
    if (!isObject(item)) return { kind: 'raw', value: item };
    switch (item['type']) {
      case 'content':
        return contentPart(tool, n, readContent(item['content']));
      case 'diff': {
        const path = str(item['path']) || str(firstChange(item)['path']);
        if (!path && typeof item['newText'] !== 'string') return { kind: 'raw', value: item };
        const { item: edit, clipped } = unclipped(tool, n, item);
        return {
          kind: 'diff',
          path,
          created: item['oldText'] === null || item['oldText'] === undefined,
          diff: diffOf(edit),
          clipped,
        };
      }
      case 'session':
        return { kind: 'session', id: str(item['sessionId']) };
      case 'terminal':
        return terminalPart(tool, n, str(item['terminalId']), str(item['output']));
      default:
        return { kind: 'raw', value: item };
    }
  });
}

function contentPart(tool: ToolCall, n: number, content: Content): Part {
  const path = `/content/${n}/content/text`;
  if (content.kind !== 'text') return { kind: 'content', content, path, gap: undefined };
  const { text, gap } = gapOf(tool, path, content.text);
  return { kind: 'content', content: { kind: 'text', text }, path, gap };
}

function terminalPart(tool: ToolCall, n: number, id: string, output: string): Part {
  const path = `/content/${n}/output`;
  const { text, gap } = gapOf(tool, path, output);
  return { kind: 'terminal', id, output: text, path, gap };
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
function commandField(tool: ToolCall): readonly [string, string] | undefined {
  const input = marked(tool, '/rawInput', tool.rawInput);
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
  /** The file of the call, and the line there. */
  path?: string;
  line?: number | undefined;
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
      const text = relative(path, cwd) + at + (more > 0 ? ` +${more}` : '');
      return { text, mono: true, fromTitle: false, path, line: place?.line };
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

/** The longest command of one line, in characters, that the row of a call shows whole. */
const longestInRow = 400;

/** Returns the command line where the row of a call cannot show it whole. */
export function longCommand(tool: ToolCall): string | undefined {
  const line = command(tool);
  return line !== undefined && (line.includes('\n') || line.length > longestInRow) ? line : undefined;
}

/** Returns the agent's title where it says more than the row of the call, which has the verb and the target. */
export function furtherTitle(tool: ToolCall, cwd: string, verb: string): string | undefined {
  const { text, fromTitle } = target(tool, cwd);
  const title = unmarked(tool.title ?? '').trim();
  if (fromTitle || title === '') return undefined;
  const paths = (tool.locations ?? []).map((place) => place.path);
  for (const part of parts(tool)) if (part.kind === 'diff') paths.push(part.path);
  const said = paths.flatMap((path) => [relative(path, cwd), path.replace(/^.*[/\\]/, '')]);
  let rest = title.replaceAll(`${cwd}/`, '');
  for (const one of [text, ...said, verb]) if (one !== '') rest = rest.replaceAll(one, ' ');
  return /[\p{L}\p{N}]{4}|\p{Lo}{2}/u.test(rest) ? title : undefined;
}

/** Reports whether a raw input or output says anything. */
export function filled(value: unknown): boolean {
  return value !== undefined && value !== null && JSON.stringify(value) !== '{}';
}

/** Returns the texts of a value of a call that are held in part: their JSON pointers and sizes. */
export function cutsIn(tool: ToolCall, path: string): { path: string; name: string; bytes: number }[] {
  return (tool.cut ?? [])
    .filter((cut) => cut.path === path || cut.path.startsWith(`${path}/`))
    .map((cut) => ({
      path: cut.path,
      name: cut.path
        .slice(path.length + 1)
        .replaceAll('~1', '/')
        .replaceAll('~0', '~'),
      bytes: cut.bytes,
    }));
}

/** Returns the text result of a command or tool from the raw output, for calls without content, and its JSON pointer where it is one text. */
export function rawText(output: unknown): { text: string; path?: string } | undefined {
  if (typeof output === 'string') return { text: output, path: '/rawOutput' };
  if (!isObject(output)) return undefined;
  for (const key of ['output', 'formatted_output', 'aggregated_output', 'text']) {
    const value = output[key];
    if (typeof value === 'string') return { text: value, path: `/rawOutput/${key}` };
  }
  const both = ['stdout', 'stderr'].flatMap((name) => {
    const value = output[name];
    return typeof value === 'string' && value !== '' ? [{ text: value, path: `/rawOutput/${name}` }] : [];
  });
  if (both.length < 2) return both[0];
  return { text: both.map(({ text }) => text).join('\n') };
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
