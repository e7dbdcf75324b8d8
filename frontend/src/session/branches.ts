import type { Session } from '../api/records';
import type { Item } from '../state/transcript';

// Branches of a conversation: sessions that say one of its messages differently.

/** The messages at which a conversation can branch, by their turns, and the message that a branch itself says differently. */
export interface Beginnings {
  turns: ReadonlyMap<string, Item>;
  own: Item | undefined;
}

/** Returns the messages that begin turns. A message that was sent into a running turn begins none. */
export function beginnings(items: readonly Item[]): Beginnings {
  const turns = new Map<string, Item>();
  let own: Item | undefined;
  let branched = false;
  for (const item of items) {
    const { kind, turn, divider } = item.entry;
    if (divider?.code === 'session.branched') {
      branched = true;
      own = undefined;
    } else if (kind === 'user') {
      if (branched) own ??= item;
      if (turn !== undefined && !turns.has(turn)) turns.set(turn, item);
    }
  }
  return { turns, own };
}

/** Returns the conversations that go on from one message, in the order of branches; none where only one does. own = it is the branch's own first message. */
export function siblings(
  sessions: { get(id: string): Session | undefined },
  branches: readonly Session[],
  session: string,
  turn: string | undefined,
  own: boolean,
): Session[] {
  const origin = own ? sessions.get(session)?.origin : undefined;
  const at = origin?.kind === 'branch' ? origin : { session, turn };
  const others = branches.filter((one) => one.origin?.session === at.session && one.origin?.turn === at.turn);
  const first = at.session === undefined ? undefined : sessions.get(at.session);
  const all = first ? [first, ...others] : others;
  return all.length > 1 ? all : [];
}
