import type { AgentDefinition } from '../api/records';

// An entry of agents.json in the editor: rows may be empty or incomplete.

interface EnvRow {
  name: string;
  value: string;
  /** The value is hidden while it is typed. */
  secret: boolean;
}

interface Draft {
  id: string;
  name: string;
  command: string;
  /** One argument per field. Nothing splits arguments, and no shell reads them. */
  args: string[];
  env: EnvRow[];
  cwd: string;
  /** The entry replaces the known agent of this id. */
  override: boolean;
}

/** The ids that a new entry cannot have, or only as an override. */
interface Taken {
  /** Ids in agents.json, and built-in ids. */
  ids: ReadonlySet<string>;
  /** Ids in the catalogue. */
  known: ReadonlySet<string>;
}

/** The server's mask for a hidden value. Sent back, the mask keeps the stored value. */
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

/** An entry as it is sent, without absent fields. */
type Definition = AgentDefinition & { id: string };

/** Returns the entry of a draft. Arguments keep their spaces; rows without text are left out. */
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

type Fault = 'needed' | 'id' | 'taken' | 'known' | 'env' | 'twice' | 'unnamed' | 'absolute';

/** An entry may lack a command when it has another way to install its agent, which the form does not show. */
export interface Rules {
  taken: Taken;
  commandless?: boolean;
}

/** Returns the faults of a draft by field: name, id, command, cwd, and env.0 for the first variable. */
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

/** Derives an id from a name. agents.json and the API use the id. */
export function idOf(name: string): string {
  return name
    .normalize('NFKD')
    .toLowerCase()
    .replace(/[\u0300-\u036f]/g, '')
    .replace(/[^a-z0-9]+/g, '-')
    .replace(/^[-0-9]+|-+$/g, '')
    .slice(0, 64);
}

/** Reports whether the name of a variable suggests a secret. */
export function looksSecret(name: string): boolean {
  return /(^|_)(KEY|TOKEN|SECRET|PASSWORD|PASSWD|PWD|CREDENTIALS?|AUTH)($|_)|APIKEY/i.test(name);
}
