import type { Session } from '../api/records';
import type { Sound } from '../shell/sound';
import { heldBy } from '../ui/glyph';
import { store } from '../ui/storage';

export { play } from '../shell/sound';

// Tells by a sound that a conversation waits for the person, or that its turn has ended. Of several pages that are told of the same thing one
// plays, and none where a page shows the conversation to a person who looks at it.

/** What sounds need to know of the page. */
export interface Surroundings {
  on: () => boolean;
  /** Reports whether the person looks at the conversation in this page. */
  looksAt: (session: string) => boolean;
  /** Returns the newest state of a conversation. */
  now: (session: string) => Session | undefined;
  play: (sound: Sound) => Promise<void>;
}

/** Milliseconds in which a page that is looked at says so, and a queued message begins the next turn. */
const grace = 400;
/** Milliseconds after a sound in which there is no other. */
const quiet = 2_000;
const key = 'deskhand.sound';

/** Returns what a change of a conversation is told by. */
export function soundOf(before: Session | undefined, session: Session): Sound | undefined {
  if (!before) return undefined;
  if (session.waiting > before.waiting || (heldBy(session) && !heldBy(before))) return 'waits';
  // The end of a subagent's work is for its agent to hear.
  return before.turn && !session.turn && session.waiting === 0 && !session.subagent ? 'ended' : undefined;
}

/** Takes a change of a conversation that soundOf names. */
export function tell(sound: Sound, session: Session, around: Surroundings): void {
  if (!around.on()) return;
  const what = `${session.id} ${sound} ${session.updatedAt}`;
  if (around.looksAt(session.id)) {
    claim(what);
    return;
  }
  setTimeout(() => {
    const now = around.now(session.id);
    const waits = now !== undefined && (now.waiting > 0 || heldBy(now) !== undefined);
    const lasts = sound === 'waits' ? waits : now !== undefined && !now.turn;
    if (lasts) void alone(() => claim(what) && around.play(sound).catch(() => undefined));
  }, grace);
}

/** Takes what is told for this page. It returns false when another page has it, or a sound was a moment ago. */
function claim(what: string): boolean {
  const [last, at = '0'] = (localStorage.getItem(key) ?? '').split('\n');
  const since = Date.now() - Number(at);
  if (last === what || (since >= 0 && since < quiet)) return false;
  store(key, `${what}\n${Date.now()}`);
  return true;
}

/** Runs a step while no other page does. Without locks there is one page: the window. */
async function alone(step: () => unknown): Promise<void> {
  const locks = (navigator as { locks?: LockManager }).locks;
  if (!locks) step();
  else
    await locks.request(key, async () => {
      step();
    });
}
