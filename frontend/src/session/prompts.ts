import type { Client } from '../api/client';
import { client } from '../state/state';
import type { SessionView } from '../state/session.svelte';
import type Transcript from './Transcript.svelte';

// Moves from prompt to prompt by keys.

/** The distance in pixels from the top edge at which a prompt is shown. */
const below = 24;

/** Shows the next or previous prompt, even if it is not mounted or not held. */
export async function toPrompt(transcript: Transcript | undefined, step: -1 | 1): Promise<void> {
  if (!transcript) return;
  const { view, scroller, moves } = transcript.reading();
  if (!scroller) return;
  const edge = scroller.getBoundingClientRect().top + below;
  const prompts = [...scroller.querySelectorAll('[data-prompt]')];
  const tops = prompts.map((prompt) => prompt.getBoundingClientRect().top - edge);
  const index = step < 0 ? tops.findLastIndex((top) => top < -4) : tops.findIndex((top) => top > 4);
  moves(step < 0 ? 'up' : 'either');
  if (index >= 0) {
    scroller.scrollTop += tops[index] ?? 0;
    return;
  }
  const { mounted, place } = transcript.reading();
  const outermost = mounted.at(step < 0 ? 0 : -1);
  const seq = outermost && (await promptBeside(client, view, outermost.seq, step));
  if (!scroller.isConnected || transcript.reading().place !== place) return; // the person has left the session meanwhile
  if (seq !== undefined) await transcript.reveal(seq, 'prompt');
  else if (step > 0) await transcript.tail();
  else scroller.scrollTop = 0;
}

/** Returns the sequence number of the next or previous prompt. Entries that are not held are fetched for the search, and not kept. */
export async function promptBeside(
  client: Pick<Client, 'entries' | 'entriesAfter'>,
  { id, items, next, newer }: Pick<SessionView, 'id' | 'items' | 'next' | 'newer'>,
  seq: number,
  step: -1 | 1,
): Promise<number | undefined> {
  const nearest = step < 0 ? -1 : 0;
  const held = items.filter((one) => one.entry.kind === 'user' && (one.seq - seq) * step > 0).at(nearest);
  if (held) return held.seq;
  let at = step < 0 ? next : newer;
  while (at !== undefined) {
    const page = await (step < 0 ? client.entries(id, at) : client.entriesAfter(id, at));
    const found = page.items.filter((one) => one.kind === 'user').at(nearest);
    if (found) return found.seq;
    at = step < 0 ? page.next : page.newer;
  }
  return undefined;
}
