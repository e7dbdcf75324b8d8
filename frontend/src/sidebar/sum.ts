import type { Session } from '../api/records';
import { statusOf, type Status } from '../ui/glyph';

/** The states of members, the loudest first. */
const loudness: readonly Status[] = [
  'waiting',
  'failed',
  'gone',
  'running',
  'queued',
  'unseen',
  'idle',
  'asleep',
];

/** Returns the loudest state among sessions. */
export function loudest(sessions: readonly Session[]): Status {
  const states = new Set(sessions.map(statusOf));
  return loudness.find((state) => states.has(state)) ?? 'idle';
}

/** Returns the number of requests of sessions that wait for a person. */
export function waitingIn(sessions: readonly Session[]): number {
  return sessions.reduce((sum, { waiting }) => sum + waiting, 0);
}
