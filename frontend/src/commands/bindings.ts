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

// Changing what keys do: tables of keys and the commands that they belong to, and the bindings that make such a table of the defaults.

export type Table = ReadonlyMap<string, readonly CommandId[]>;

/** The command that keys would be taken from when this one gets them. */
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

/** The command has again the keys that it has by itself, also those that were given to others. */
export function reset(table: Table, id: CommandId): Table {
  let made = table;
  for (const [chord, ids] of table) if (ids.includes(id)) made = withoutKeys(made, chord, id);
  for (const chord of defaultKeys(id)) made = withKeys(made, chord, id);
  return made;
}

/** Whether a command's keys are those that it has by itself. */
export function isDefault(table: Table, id: CommandId): boolean {
  const own = defaultKeys(id);
  const now = [...table].filter(([, ids]) => ids.includes(id)).map(([chord]) => chord);
  return now.length === own.length && own.every((chord) => now.includes(chord));
}

/** The bindings that make a table of the defaults. What of those before means nothing here stays: another version may know it. */
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
    // A command that takes the place of another needs no word about that one.
    const replaced = gone.every((id) => fresh.some((one) => scopeOf(one) === scopeOf(id)));
    if (!replaced) made.push({ keys: chord, command: null });
    for (const id of replaced ? fresh : has) made.push({ keys: chord, command: id });
  }
  return made;
}

export type FaultKind = 'keys' | 'command' | 'bare' | 'again';

export interface Fault {
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

/** What of the bindings does nothing, or loses to one that stands further down. */
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

/** All commands with the keys that they have in a table. */
export function commandsOf(table: Table): Map<CommandId, string[]> {
  const made = new Map<CommandId, string[]>(commandIds.map((id) => [id, []]));
  for (const [chord, ids] of table) for (const id of ids) made.get(id)?.push(chord);
  return made;
}
