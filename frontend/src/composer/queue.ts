import type { Event, QueueItem } from '../api/records';

// The prompts that wait in a conversation, as events change them.

/** What is queued after these events, in its order. */
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

/** Where the focus goes when the row that has it is gone: to the one that takes its place, else the last. */
export function neighbour(items: readonly QueueItem[], id: string): string | undefined {
  const at = items.findIndex((item) => item.id === id);
  const left = items.filter((item) => item.id !== id);
  return left[Math.min(Math.max(at, 0), left.length - 1)]?.id;
}

/** When a prompt is to reach the agent. */
export type When = 'queue' | 'interrupt' | 'steer';

/** What is done with a prompt that is sent: it waits for its turn, or goes now: into the turn where it can, else before everything. */
export function whenOf(now: boolean, steers: boolean): When {
  if (!now) return 'queue';
  return steers ? 'steer' : 'interrupt';
}

/** What a screen reader is told of a prompt that was sent, if it waits for something. */
export function heard(when: When, waits: boolean) {
  if (!waits) return undefined;
  return (
    { queue: 'announce.queued', interrupt: 'announce.interrupting', steer: 'announce.steering' } as const
  )[when];
}
