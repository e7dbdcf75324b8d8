import type { Event, QueueItem } from '../api/records';

// The prompts that wait in a session's queue.

/** Returns the queue after these events, in order. */
export function applyQueue(items: readonly QueueItem[], events: readonly Event[]): readonly QueueItem[] {
  const held = new Map(items.map((item) => [item.id, item]));
  for (const event of events) {
    if (event.type === 'queue.upsert') {
      const item = event.data as QueueItem;
      held.set(item.id, item);
    } else if (event.type === 'queue.removed') {
      held.delete((event.data as { id: string }).id);
    }
  }
  return [...held.values()].sort((a, b) => a.position - b.position);
}

/** Returns the row that gets the focus when the given row is removed: the row that takes its place, otherwise the last. */
export function neighbour(items: readonly QueueItem[], id: string): string | undefined {
  const at = items.findIndex((item) => item.id === id);
  const left = items.filter((item) => item.id !== id);
  return left[Math.min(Math.max(at, 0), left.length - 1)]?.id;
}

/** The time when a prompt goes to the agent. */
export type When = 'queue' | 'interrupt' | 'steer';

/**
 * Returns the time at which a prompt goes: after the turn, or now. A prompt for now goes into the running turn where the agent allows that,
 * and interrupts the turn where not.
 */
export function whenOf(now: boolean, steers: boolean): When {
  if (!now) return 'queue';
  return steers ? 'steer' : 'interrupt';
}

/** Returns the announcement for screen readers about a prompt that waits; undefined for a prompt that does not. */
export function heard(when: When, waits: boolean) {
  if (!waits) return undefined;
  return (
    { queue: 'announce.queued', interrupt: 'announce.interrupting', steer: 'announce.steering' } as const
  )[when];
}
