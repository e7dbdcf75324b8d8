import type { Session } from '../api/records';
import { target } from '../content/tool';
import type { Item } from '../state/transcript';
import '../strings/working';
import { lookup, t } from '../strings/t';

// What a conversation does now, in words, from the entries of its running turn.

type Doing = 'gone' | 'cancelling' | 'asking' | 'thinking' | 'writing' | 'model' | 'tool';

export interface Work {
  doing: Doing;
  words: string;
}

/** The longest target in the words, such as a command line. */
const longest = 120;

interface State {
  /** The server does not answer. */
  gone: boolean;
  /** A request of this session waits for an answer. */
  asks: boolean;
}

/** Returns what a session does now. items are the entries that are held, the newest last. */
export function workOf(session: Session, items: readonly Item[], { gone, asks }: State): Work {
  const plain = (doing: Exclude<Doing, 'tool'>): Work => ({ doing, words: t(`working.${doing}`) });
  if (gone) return plain('gone');
  if (session.phase === 'cancelling') return plain('cancelling');
  if (asks) return plain('asking');
  const turn = session.turn?.id;
  const last = items.findLast(({ entry }) => entry.kind !== 'plan' && entry.kind !== 'notice');
  if (!last || last.entry.turn !== turn) return plain('model');
  // An agent may run several tools at once, and the entry of a longer one stands above others.
  for (let n = items.length - 1; n >= 0; n--) {
    const { entry } = items[n] ?? last;
    if (entry.turn !== turn) break;
    if (entry.kind !== 'tool' || !entry.tool || !['pending', 'in_progress'].includes(entry.tool.status))
      continue;
    const { text, fromTitle } = target(entry.tool, session.cwd);
    const line = text.replace(/\s+/g, ' ').trim();
    const shown = line.length > longest ? `${line.slice(0, longest - 1)}…` : line;
    const words = fromTitle
      ? shown
      : (lookup(`working.tool.${entry.tool.kind}`, { target: shown }) ??
        t('working.tool.any', { target: shown }));
    return { doing: 'tool', words };
  }
  if (last.entry.kind === 'thought') return plain('thinking');
  if (last.entry.kind === 'agent') return plain('writing');
  return plain('model');
}
