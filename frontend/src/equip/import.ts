import { isObject, type Json as Values } from '../content/blocks';
import { nameFault, type Entry } from './entry';
import { readJson, type JsonFault } from './json';
import '../strings/equip';

// Reads MCP servers from pasted text: settings of Claude Desktop, Claude Code, Cursor, Windsurf, Cline and Gemini (mcpServers), VS Code
// (servers, mcp.servers), Zed (context_servers), opencode (mcp), the protocol's own list, a table of servers, or a single server; whole
// files, or an excerpt as a README has.

type Origin = 'mcpServers' | 'servers' | 'context_servers' | 'mcp' | 'list' | 'table' | 'one';

export interface Note {
  code: 'variable' | 'switch' | 'skipped_field' | 'extension' | 'unreadable' | 'renamed';
  detail: string;
}

export interface Found {
  /** The server's name in the text; empty for a single server without a name. */
  name: string;
  /** Undefined where no entry can be made; a note says why. */
  entry: Entry | undefined;
  origin: Origin;
  notes: Note[];
}

export type Import =
  | { ok: true; found: Found[] }
  /** Undefined for valid JSON without a server. */
  | { ok: false; fault: JsonFault | undefined };

const tables: readonly { keys: readonly string[]; origin: Origin }[] = [
  { keys: ['mcpServers'], origin: 'mcpServers' },
  { keys: ['amp.mcpServers'], origin: 'mcpServers' },
  { keys: ['mcp', 'servers'], origin: 'servers' },
  { keys: ['mcp.servers'], origin: 'servers' },
  { keys: ['servers'], origin: 'servers' },
  { keys: ['context_servers'], origin: 'context_servers' },
  { keys: ['mcp_servers'], origin: 'mcpServers' },
  { keys: ['mcp'], origin: 'mcp' },
];

/** Finds the servers in a text. */
export function readServers(text: string): Import {
  const read = parse(text);
  if (!read.ok) return { ok: false, fault: read.fault };
  const found = search(read.value);
  return found.length > 0 ? { ok: true, found: distinct(found) } : { ok: false, fault: undefined };
}

/** Parses a text without its Markdown fence. An excerpt of an object gets its outer braces back. */
function parse(text: string) {
  const bare = text.replace(/^\s*```\w*\r?\n([\s\S]*?)\r?\n\s*```\s*$/, '$1');
  const read = readJson(bare, true);
  if (read.ok) return read;
  const piece = readJson(`{${bare.trim().replace(/,$/, '')}}`, true);
  return /^\s*"/.test(bare) && piece.ok ? piece : read;
}

function search(value: unknown): Found[] {
  if (Array.isArray(value)) return list(value);
  if (!isObject(value)) return [];
  const off = switchedOff(value);
  return within(value).map((found) =>
    found.entry && off(found.name) ? { ...found, entry: { ...found.entry, enabled: false } } : found,
  );
}

/** Returns a function that reports whether the settings beside the servers disable a server, as the lists of Claude Code and Gemini do. */
function switchedOff(settings: Values): (name: string) => boolean {
  const mcp = isObject(settings['mcp']) ? settings['mcp'] : {};
  const off = [
    settings['disabledMcpServers'],
    settings['disabledMcpjsonServers'],
    settings['excludeMCPServers'],
    mcp['excluded'],
  ].flatMap(strings);
  const only = [settings['allowMCPServers'], mcp['allowed']].find(Array.isArray);
  return (name) => off.includes(name) || (only !== undefined && !strings(only).includes(name));
}

function within(value: Values): Found[] {
  for (const { keys, origin } of tables) {
    const table = keys.reduce<unknown>((at, key) => (isObject(at) ? at[key] : undefined), value);
    if (Array.isArray(table) && table.length > 0) return list(table);
    if (isObject(table) && (origin !== 'mcp' || isTable(table))) return entries(table, origin);
  }
  if (isServer(value)) return [one(typeof value['name'] === 'string' ? value['name'] : '', value, 'one')];
  if (isTable(value)) return entries(value, 'table');
  // Claude Code stores servers by project.
  if (isObject(value['projects'])) return Object.values(value['projects']).flatMap(search);
  return [];
}

function entries(table: Values, origin: Origin): Found[] {
  return Object.entries(table).map(([name, server]) => one(name, server, origin));
}

function list(items: unknown[]): Found[] {
  return items
    .filter((item): item is Values => isObject(item) && isServer(item))
    .map((item) => one(typeof item['name'] === 'string' ? item['name'] : '', item, 'list'));
}

function isServer(value: unknown): boolean {
  if (!isObject(value)) return false;
  const { command } = value;
  return (
    typeof command === 'string' ||
    Array.isArray(command) ||
    (isObject(command) && typeof command['path'] === 'string') ||
    address(value) !== undefined
  );
}

/** Reports whether every member of an object is a server, so that other settings are not taken for servers. */
function isTable(value: Values): boolean {
  const all = Object.values(value);
  return all.length > 0 && all.every(isServer);
}

function address(server: Values): { url: string; transport?: string } | undefined {
  const { url, httpUrl, serverUrl } = server;
  if (typeof httpUrl === 'string') return { url: httpUrl, transport: 'http' };
  if (typeof url === 'string') return { url };
  return typeof serverUrl === 'string' ? { url: serverUrl } : undefined;
}

function one(name: string, server: unknown, origin: Origin): Found {
  const notes: Note[] = [];
  const add = (code: Note['code'], detail: string) => notes.push({ code, detail });
  const nothing = (code: Note['code'], detail = ''): Found => {
    add(code, detail);
    return { name, entry: undefined, origin, notes };
  };
  if (!isObject(server)) return nothing('unreadable');
  if (!isServer(server)) {
    // A server of a Zed extension cannot be started without the extension.
    return 'settings' in server || server['source'] === 'extension'
      ? nothing('extension')
      : nothing('unreadable');
  }
  const entry = address(server) ? remote(server, add) : local(server, add);
  const enabled = enabledOf(server, add);
  if (enabled !== undefined) entry['enabled'] = enabled;
  // In Gemini and opencode timeout is in milliseconds, in Cline in seconds.
  const limit = server['timeoutMs'] ?? server['timeout'];
  if (typeof limit === 'number' && Number.isFinite(limit) && limit > 0)
    entry['timeoutMs'] = Math.round(limit < 1000 && !('timeoutMs' in server) ? limit * 1000 : limit);
  for (const field of Object.keys(server)) if (!understood.has(field)) add('skipped_field', field);
  return { name: name.trim() || suggestion(entry), entry, origin, notes };
}

const understood = new Set([
  ...[
    'name',
    'type',
    'transport',
    'transportType',
    'command',
    'args',
    'env',
    'environment',
    'cwd',
    'url',
    'httpUrl',
    'serverUrl',
  ],
  ...[
    'headers',
    'http_headers',
    'bearerTokenEnvVar',
    'bearer_token_env_var',
    'envHeaders',
    'envHttpHeaders',
    'env_http_headers',
  ],
  ...['oauth', 'enabled', 'isActive', 'disabled', 'timeout', 'timeoutMs', 'source', 'description'],
]);

/** A server with any switch off, or with a switch that cannot be read, is disabled. */
function enabledOf(server: Values, add: (code: Note['code'], detail: string) => void): boolean | undefined {
  let enabled: boolean | undefined;
  for (const field of ['enabled', 'isActive', 'disabled']) {
    const said = server[field];
    if (said === undefined || said === null) continue;
    if (typeof said !== 'boolean') add('switch', field);
    enabled = enabled !== false && typeof said === 'boolean' && said === (field !== 'disabled');
  }
  return enabled;
}

function local(server: Values, add: (code: Note['code'], detail: string) => void): Entry {
  const { command } = server;
  // Earlier versions of Zed wrote the command as an object with arguments and variables.
  const from = isObject(command) ? command : server;
  const [program, ...first] = Array.isArray(command)
    ? strings(command)
    : [String(isObject(command) ? command['path'] : command)];
  const entry: Entry = { type: 'local', command: program ?? '', args: [...first, ...strings(from['args'])] };
  // A server gets the agent's own variables anyway.
  const env = Object.entries(pairs(from['env'] ?? from['environment'] ?? server['env'])).filter(
    ([name, value]) => variableIn(value) !== name,
  );
  for (const [name, value] of env) if (placeholder.test(value)) add('variable', name);
  for (const word of [entry['command'], ...(entry['args'] as string[])])
    if (placeholder.test(String(word))) add('variable', String(word));
  if (env.length > 0) entry['env'] = Object.fromEntries(env);
  if (typeof server['cwd'] === 'string' && server['cwd'] !== '') {
    if (placeholder.test(server['cwd'])) add('variable', 'cwd');
    else entry['cwd'] = server['cwd'];
  }
  return entry;
}

function remote(server: Values, add: (code: Note['code'], detail: string) => void): Entry {
  const { url = '', transport = transportIn(server) } = address(server) ?? {};
  const entry: Entry = { type: 'remote', url };
  if (placeholder.test(url)) add('variable', 'url');
  const headers: Record<string, string> = {};
  const variables = pairs(server['envHeaders'] ?? server['envHttpHeaders'] ?? server['env_http_headers']);
  let bearer = server['bearerTokenEnvVar'] ?? server['bearer_token_env_var'];
  for (const [name, value] of Object.entries(pairs(server['headers'] ?? server['http_headers']))) {
    const token = /^authorization$/i.test(name) ? variableIn(value.replace(/^bearer\s+/i, '')) : undefined;
    const variable = variableIn(value);
    if (token !== undefined && /^bearer\s/i.test(value)) bearer = token;
    else if (variable !== undefined) variables[name] = variable;
    else {
      if (placeholder.test(value)) add('variable', name);
      headers[name] = value;
    }
  }
  if (Object.keys(headers).length > 0) entry['headers'] = headers;
  if (typeof bearer === 'string' && bearer !== '') entry['bearerTokenEnvVar'] = bearer;
  if (Object.keys(variables).length > 0) entry['envHeaders'] = variables;
  if (isObject(server['oauth']) || typeof server['oauth'] === 'boolean') entry['oauth'] = server['oauth'];
  if (transport) entry['transport'] = transport;
  return entry;
}

/** Returns the transport, which each program names differently. */
function transportIn(server: Values): 'http' | 'sse' | undefined {
  const said = [server['transport'], server['transportType'], server['type']].find(
    (one) => typeof one === 'string',
  );
  const word = String(said ?? '').toLowerCase();
  if (word === 'sse') return 'sse';
  return /http/.test(word) ? 'http' : undefined;
}

/** Placeholders that only the original program can fill in. Environment variables are filled in when the server starts. */
const placeholder = /\$\{(?:input|file|config|command|secrets?|op|vault):[^}]*\}|\{file:[^}]*\}/;

/** Returns the variable of a value that is nothing else: ${TOKEN}, ${env:TOKEN}, {env:TOKEN}, $TOKEN. */
function variableIn(value: string): string | undefined {
  const found = /^(?:\$\{(?:env:)?(\w+)\}|\{env:(\w+)\}|\$(\w+))$/.exec(value.trim());
  return found?.[1] ?? found?.[2] ?? found?.[3];
}

function strings(value: unknown): string[] {
  if (!Array.isArray(value)) return [];
  return value.filter((one) => ['string', 'number', 'boolean'].includes(typeof one)).map(String);
}

/** Reads a table of strings, also in the protocol's form: [{name, value}]. */
function pairs(value: unknown): Record<string, string> {
  const all: [string, unknown][] = Array.isArray(value)
    ? value.filter(isObject).map((pair) => [String(pair['name'] ?? ''), pair['value']])
    : isObject(value)
      ? Object.entries(value)
      : [];
  return Object.fromEntries(
    all
      .filter(([name, one]) => name !== '' && ['string', 'number', 'boolean'].includes(typeof one))
      .map(([name, one]) => [name, String(one)]),
  );
}

/** Suggests a name for a server without one: the name of its package, otherwise its host. */
function suggestion(entry: Entry): string {
  if (typeof entry['url'] === 'string') {
    try {
      const { hostname } = new URL(entry['url']);
      return hostname.replace(/^(?:mcp|api|www)\./, '').replace(/\.[^.]+$/, '') || hostname;
    } catch {
      return '';
    }
  }
  const words = [String(entry['command']), ...strings(entry['args'])].filter((word) => !word.startsWith('-'));
  const runners =
    /^(?:npx|bunx|uvx|pnpx|uv|npm|pnpm|yarn|dlx|exec|run|docker|node|deno|bun|python3?|cmd|\/c|tool|x)(?:\.\w+)?$/;
  const named = words.map(baseOf).find((one) => one !== '' && !runners.test(one)) ?? '';
  const scope = words.map((one) => /^@([\w.-]+)\/mcp(?:-server)?(?:@|$)/.exec(one)?.[1]).find(Boolean);
  return (
    scope ?? (named.replace(/^(?:mcp-server-|server-|mcp-)|(?:-mcp-server|-mcp|-server)$/g, '') || named)
  );
}

/** Returns the last part of a path or package name, without version, tag and extension. */
function baseOf(word: string): string {
  const last = word.split(/[/\\]/).pop() ?? '';
  return last
    .replace(/@[^@]*$/, '')
    .replace(/\.(?:m?js|ts|py|exe|cmd|sh)$/, '')
    .replace(/:[^:]*$/, '');
}

/** Renames servers of the same name, because the second would overwrite the first. */
function distinct(found: readonly Found[]): Found[] {
  const names = new Set<string>();
  return found.map((one) => {
    let { name } = one;
    for (let n = 2; names.has(name) && one.entry; n++) name = `${one.name}-${n}`;
    names.add(name);
    return name === one.name
      ? one
      : { ...one, name, notes: [...one.notes, { code: 'renamed', detail: one.name } satisfies Note] };
  });
}

/** Returns the fault of each chosen name by its position. Names with a fault cannot be stored. */
export function nameFaults(names: readonly string[]): (ReturnType<typeof nameFault> | 'twice')[] {
  return names.map((name, index) => nameFault(name) ?? (names.indexOf(name) !== index ? 'twice' : undefined));
}
