import type { AgentDefinition } from '../api/records';

// An entry of agents.json as it is edited: rows that may be empty or half written, and what is made of them.

export interface EnvRow {
  name: string;
  value: string;
  /** It is not shown as it is typed. */
  secret: boolean;
}

export interface Draft {
  id: string;
  name: string;
  command: string;
  /** One a field: nothing is split, and no shell reads them. */
  args: string[];
  env: EnvRow[];
  cwd: string;
  /** It stands in the place of the known agent of that id. */
  override: boolean;
}

/** Ids that a new entry cannot have, or only in the place of what has it. */
export interface Taken {
  /** In agents.json, or our own. */
  ids: ReadonlySet<string>;
  /** In the catalogue. */
  known: ReadonlySet<string>;
}

/** What the server sends in place of a value that it keeps to itself; sent back, it means the one that is kept. */
export const masked = '••••';

export function emptyDraft(): Draft {
  return { id: '', name: '', command: '', args: [], env: [], cwd: '', override: false };
}

export function draftOf(definition: AgentDefinition): Draft {
  return {
    id: definition.id ?? '',
    name: definition.name ?? '',
    command: definition.command ?? '',
    args: [...(definition.args ?? [])],
    env: Object.entries(definition.env ?? {}).map(([name, value]) => ({ name, value, secret: true })),
    cwd: definition.cwd ?? '',
    override: definition.override ?? false,
  };
}

/** An entry as it is sent: what is not there is left out. */
export type Definition = AgentDefinition & { id: string };

/** The entry that a draft stands for. Arguments are kept as they are, blanks and all; rows without a word in them are left out. */
export function definitionOf(draft: Draft): Definition {
  const cwd = draft.cwd.trim();
  const name = draft.name.trim();
  const command = draft.command.trim();
  return {
    id: draft.id.trim(),
    ...(name ? { name } : {}),
    ...(command ? { command } : {}),
    args: draft.args.filter((one) => one !== ''),
    env: Object.fromEntries(
      draft.env.filter(({ name }) => name.trim() !== '').map(({ name, value }) => [name.trim(), value]),
    ),
    ...(cwd ? { cwd } : {}),
    ...(draft.override ? { override: true } : {}),
  };
}

export type Fault = 'needed' | 'id' | 'taken' | 'known' | 'env' | 'twice' | 'unnamed' | 'absolute';

/** An entry may do without a command when it says otherwise how its agent is installed; the form does not show how. */
export interface Rules {
  taken: Taken;
  commandless?: boolean;
}

/** What is wrong with a draft, by field: name, id, command, cwd, and env.0 for the first variable. */
export function faultsOf(draft: Draft, { taken, commandless = false }: Rules): Record<string, Fault> {
  const faults: Record<string, Fault> = {};
  const { id, name, command, cwd } = definitionOf(draft);
  if (!name) faults['name'] = 'needed';
  if (!id) faults['id'] = 'needed';
  else if (!/^[a-z][a-z0-9-]{0,63}$/.test(id)) faults['id'] = 'id';
  else if (taken.ids.has(id)) faults['id'] = 'taken';
  else if (taken.known.has(id) && !draft.override) faults['id'] = 'known';
  if (!command && !commandless) faults['command'] = 'needed';
  if (cwd && !isWhole(cwd)) faults['cwd'] = 'absolute';
  const seen = new Set<string>();
  draft.env.forEach((row, index) => {
    const variable = row.name.trim();
    if (!variable) {
      if (row.value !== '') faults[`env.${index}`] = 'unnamed';
      return;
    }
    if (/[=\s\0]/.test(variable)) faults[`env.${index}`] = 'env';
    else if (seen.has(variable)) faults[`env.${index}`] = 'twice';
    seen.add(variable);
  });
  return faults;
}

function isWhole(path: string): boolean {
  return (
    path.startsWith('/') || path.startsWith('~') || /^[A-Za-z]:[\\/]/.test(path) || path.startsWith('\\\\')
  );
}

/** An id that is made of a name: what stands in agents.json and in calls. */
export function idOf(name: string): string {
  return name
    .normalize('NFKD')
    .toLowerCase()
    .replace(/[\u0300-\u036f]/g, '')
    .replace(/[^a-z0-9]+/g, '-')
    .replace(/^[-0-9]+|-+$/g, '')
    .slice(0, 64);
}

/** Names of variables whose values are nearly always secret. */
export function looksSecret(name: string): boolean {
  return /(^|_)(KEY|TOKEN|SECRET|PASSWORD|PASSWD|PWD|CREDENTIALS?|AUTH)($|_)|APIKEY/i.test(name);
}
