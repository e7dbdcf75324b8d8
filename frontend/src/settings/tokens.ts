import type { NewToken } from '../api/records';

/** The possible lifetimes of a token in days; 0 means until it is revoked. */
export const lives = [1, 7, 30, 90, 365, 0] as const;
export type Life = (typeof lives)[number];

const day = 24 * 60 * 60 * 1000;

/** Returns the request for a new token. */
export function wishOf(
  name: string,
  scopes: { runtime: boolean; client: boolean },
  life: Life,
  now: number,
): NewToken {
  const wanted = (['runtime', 'client'] as const).filter((scope) => scopes[scope]);
  return {
    name: name.trim(),
    scopes: wanted,
    ...(life > 0 ? { expiresAt: new Date(now + life * day).toISOString() } : {}),
  };
}
