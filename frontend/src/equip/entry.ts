import { isObject } from '../content/blocks';

// An entry of a directory's configuration. The form and the JSON view edit the same object, so fields that the form does not know stay. The
// server masks secrets, and keeps the stored secret where a mask comes back.

export type Entry = Record<string, unknown>;

/** The text that stands for a secret. */
export const mask = '••••';

/** A fault of an entry and its path. The catalogue has the texts under entry.fault. */
export interface EntryFault {
  path: string;
  code:
    | 'type'
    | 'command'
    | 'url'
    | 'number'
    | 'text'
    | 'table'
    | 'list'
    | 'masked'
    | 'sources'
    | 'source'
    | 'kind';
}

export type ServerType = 'local' | 'remote';

export function typeOf(entry: Entry): ServerType {
  return entry['type'] === 'local' || entry['type'] === 'stdio' || !('type' in entry || 'url' in entry)
    ? 'local'
    : 'remote';
}

/** Returns the transport of a server: stdio, http or sse. A remote server without a transport is tried as http. */
export function transportOf(entry: Entry): 'stdio' | 'http' | 'sse' {
  if (typeOf(entry) === 'local') return 'stdio';
  return entry['transport'] === 'sse' || entry['type'] === 'sse' ? 'sse' : 'http';
}

/** Returns the command line or the URL of a server in one line. */
export function targetOf(entry: Entry): string {
  if (typeOf(entry) === 'remote') return textOf(entry, 'url');
  return [programOf(entry), ...argumentsOf(entry)].map(shown).join(' ');
}

/** Quotes a word of a command line that would read as several. */
function shown(word: string): string {
  return word === '' || /[\s"']/.test(word) ? JSON.stringify(word) : word;
}

export function textOf(entry: Entry, field: string): string {
  const value = entry[field];
  return typeof value === 'string' || typeof value === 'number' ? String(value) : '';
}

export function listOf(entry: Entry, field: string): string[] {
  const value = entry[field];
  return Array.isArray(value) ? value.map(String) : [];
}

export function tableOf(entry: Entry, field: string): Record<string, string> {
  const value = entry[field];
  if (!isObject(value)) return {};
  return Object.fromEntries(Object.entries(value).map(([name, one]) => [name, String(one)]));
}

/** Returns the program of a server. command may be an array whose other items are arguments. */
export function programOf(entry: Entry): string {
  const command = entry['command'];
  return Array.isArray(command) ? String(command[0] ?? '') : textOf(entry, 'command');
}

export function argumentsOf(entry: Entry): string[] {
  return [...listOf(entry, 'command').slice(1), ...listOf(entry, 'args')];
}

/** Returns the entry with one field changed in its place; undefined removes the field. */
export function withField(entry: Entry, field: string, value: unknown): Entry {
  const next = { ...entry };
  if (value === undefined)
    return Object.fromEntries(Object.entries(entry).filter(([name]) => name !== field));
  next[field] = value;
  return next;
}

/** Returns the entry with program and arguments in separate fields, as the form shows them. */
export function withCommand(entry: Entry, program: string, args: readonly string[]): Entry {
  return { ...entry, command: program, args: [...args] };
}

const ownFields: Record<ServerType, readonly string[]> = {
  local: ['command', 'args', 'env', 'environment', 'cwd'],
  remote: ['url', 'headers', 'bearerTokenEnvVar', 'envHeaders', 'envHttpHeaders', 'oauth', 'transport'],
};

/** Returns the entry converted to the other type, without the fields of the old type alone. */
export function withType(entry: Entry, type: ServerType): Entry {
  const gone = ownFields[type === 'local' ? 'remote' : 'local'];
  const kept = Object.entries(entry).filter(([name]) => name !== 'type' && !gone.includes(name));
  const blank = type === 'local' ? { command: '', args: [] } : { url: '' };
  return { type, ...blank, ...Object.fromEntries(kept) };
}

// The fields with secrets.

const secretTables = ['env', 'environment', 'headers'];

/** Replaces every secret of an entry by the result of give. */
function eachSecret(entry: Entry, give: (value: string, path: readonly [string, string]) => string): Entry {
  const next = { ...entry };
  for (const table of secretTables) {
    const value = next[table];
    if (!isObject(value)) continue;
    next[table] = Object.fromEntries(
      Object.entries(value).map(([name, one]) => [
        name,
        typeof one === 'string' ? give(one, [table, name]) : one,
      ]),
    );
  }
  const { oauth } = next;
  if (isObject(oauth) && typeof oauth['clientSecret'] === 'string')
    next['oauth'] = { ...oauth, clientSecret: give(oauth['clientSecret'], ['oauth', 'clientSecret']) };
  return next;
}

function secretAt(entry: Entry, [field, name]: readonly [string, string]): string | undefined {
  const table = entry[field];
  const value = isObject(table) && Object.hasOwn(table, name) ? table[name] : undefined;
  return typeof value === 'string' ? value : undefined;
}

/** Returns the entry with its secrets masked, for the display. */
export function masked(entry: Entry): Entry {
  return eachSecret(entry, (value) => (value === '' ? '' : mask));
}

/** Puts secrets back in the place of masks in an entry from the JSON view. */
export function unmasked(read: Entry, before: Entry): Entry {
  return eachSecret(read, (value, path) => (value === mask ? (secretAt(before, path) ?? value) : value));
}

/** Reports whether the entry has a newly typed secret, which can be shown. */
export function hasTyped(entry: Entry): boolean {
  let typed = false;
  eachSecret(entry, (value) => {
    typed ||= value !== mask && value !== '';
    return value;
  });
  return typed;
}

// Faults that the page finds before the server is asked. The page finds slips only; the server checks the rest.

/** Returns the faults of a server's entry. stored is the server's entry of this name. */
export function faultsOf(entry: Entry, stored?: Entry): EntryFault[] {
  const faults: EntryFault[] = [];
  const { type } = entry;
  if (!['local', 'remote', 'stdio', 'http', 'sse'].includes(String(type)))
    faults.push({ path: 'type', code: 'type' });
  else if (typeOf(entry) === 'local') {
    if (programOf(entry).trim() === '') faults.push({ path: 'command', code: 'command' });
  } else if (!isAddress(textOf(entry, 'url'))) faults.push({ path: 'url', code: 'url' });
  for (const field of ['timeoutMs', 'timeout']) {
    const value = entry[field];
    if (value !== undefined && value !== null && !(Number.isSafeInteger(value) && Number(value) >= 0))
      faults.push({ path: field, code: 'number' });
  }
  for (const field of [...secretTables, 'envHeaders', 'envHttpHeaders']) {
    const value = entry[field];
    if (value === undefined || value === null) continue;
    if (!isObject(value)) faults.push({ path: field, code: 'table' });
    else
      for (const [name, one] of Object.entries(value))
        if (typeof one !== 'string') faults.push({ path: `${field}.${JSON.stringify(name)}`, code: 'text' });
  }
  eachSecret(entry, (value, path) => {
    if (value === mask && (!stored || secretAt(stored, path) !== mask)) {
      const [field, name] = path;
      faults.push({
        path: field === 'oauth' ? 'oauth.clientSecret' : `${field}.${JSON.stringify(name)}`,
        code: 'masked',
      });
    }
    return value;
  });
  return faults;
}

function isAddress(text: string): boolean {
  // A variable may stand for any part of the URL; the backend checks the result.
  const filled = text.replace(/\$\{[^{}]*\}|\{env:\w+\}/g, '1');
  if (filled !== text && text.startsWith('${')) return true;
  try {
    return ['http:', 'https:'].includes(new URL(filled).protocol);
  } catch {
    return false;
  }
}

export function nameFault(name: string): 'empty' | 'long' | 'control' | undefined {
  if (name === '') return 'empty';
  if (new TextEncoder().encode(name).length > 256) return 'long';
  return /\p{Cc}/u.test(name) ? 'control' : undefined;
}

/** Returns the path at the begin of the server's message about a refused entry. */
export function pathOf(detail: string, lines: ReadonlyMap<string, number>): string | undefined {
  // A name may contain a colon, so the longest path that fits wins.
  let found: string | undefined;
  for (const path of lines.keys())
    if (path && detail.startsWith(`${path}:`) && path.length > (found?.length ?? 0)) found = path;
  return found;
}
