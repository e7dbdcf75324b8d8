import {
  bare,
  chordOf,
  commandIds,
  defaultKeys,
  isCommand,
  keysWith,
  scopeOf,
  type Binding,
  type CommandId,
} from '../ui/keys';

// Changes of the keyboard map. A table maps keys to commands; bindings are the stored differences between a table and the defaults.

export type Table = ReadonlyMap<string, readonly CommandId[]>;

/** Returns the command that would lose the keys if the given command got them. */
export function holder(table: Table, chord: string, id: CommandId): CommandId | undefined {
  return table.get(chord)?.find((one) => one !== id && scopeOf(one) === scopeOf(id));
}

export function withKeys(table: Table, chord: string, id: CommandId): Table {
  const rest = (table.get(chord) ?? []).filter((one) => scopeOf(one) !== scopeOf(id));
  return new Map([...table, [chord, [...rest, id]]]);
}

export function withoutKeys(table: Table, chord: string, id: CommandId): Table {
  const rest = (table.get(chord) ?? []).filter((one) => one !== id);
  return new Map([...table, [chord, rest]]);
}

/** Gives a command its default keys again, and takes them from other commands. */
export function reset(table: Table, id: CommandId): Table {
  let made = table;
  for (const [chord, ids] of table) if (ids.includes(id)) made = withoutKeys(made, chord, id);
  for (const chord of defaultKeys(id)) made = withKeys(made, chord, id);
  return made;
}

/** Reports whether a command has its default keys. */
export function isDefault(table: Table, id: CommandId): boolean {
  const own = defaultKeys(id);
  const now = [...table].filter(([, ids]) => ids.includes(id)).map(([chord]) => chord);
  return now.length === own.length && own.every((chord) => now.includes(chord));
}

/**
 * Returns the bindings that turn the defaults into a table. Earlier bindings that this version cannot read stay: another version may know
 * them.
 */
export function bindingsFor(table: Table, before: readonly Binding[] = []): Binding[] {
  const made: Binding[] = before
    .filter((one) => meaningless(one))
    .map(({ keys, command }) => ({ keys, command }));
  const usual = keysWith([]);
  for (const chord of new Set([...usual.keys(), ...table.keys()])) {
    const had = usual.get(chord) ?? [];
    const has = table.get(chord) ?? [];
    const gone = had.filter((id) => !has.includes(id));
    const fresh = has.filter((id) => !had.includes(id));
    // A new command in the same scope replaces the old one, so the old command needs no binding of its own.
    const replaced = gone.every((id) => fresh.some((one) => scopeOf(one) === scopeOf(id)));
    if (!replaced) made.push({ keys: chord, command: null });
    for (const id of replaced ? fresh : has) made.push({ keys: chord, command: id });
  }
  return made;
}

type FaultKind = 'keys' | 'command' | 'bare' | 'again';

interface Fault {
  kind: FaultKind;
  binding: Binding;
}

function faultOf({ keys, command }: Binding): FaultKind | undefined {
  const chord = chordOf(keys);
  if (!chord) return 'keys';
  if (command === null) return undefined;
  if (!isCommand(command)) return 'command';
  return bare(chord, scopeOf(command)) ? 'bare' : undefined;
}

function meaningless(binding: Binding): boolean {
  return faultOf(binding) !== undefined;
}

/** Returns the bindings that have no effect, with the reason. */
export function faults(bindings: readonly Binding[]): Fault[] {
  return bindings.flatMap((binding, at): Fault[] => {
    const kind = faultOf(binding) ?? (loses(binding, bindings.slice(at + 1)) ? 'again' : undefined);
    return kind ? [{ kind, binding }] : [];
  });
}

function loses({ keys, command }: Binding, later: readonly Binding[]): boolean {
  const chord = chordOf(keys);
  return (
    command !== null &&
    isCommand(command) &&
    later.some(
      (one) =>
        chordOf(one.keys) === chord &&
        (one.command === null || (isCommand(one.command) && scopeOf(one.command) === scopeOf(command))),
    )
  );
}

/** Returns every command with its keys. */
export function commandsOf(table: Table): Map<CommandId, string[]> {
  const made = new Map<CommandId, string[]>(commandIds.map((id) => [id, []]));
  for (const [chord, ids] of table) for (const id of ids) made.get(id)?.push(chord);
  return made;
}
