// Decides whether the view follows the tail. Only a gesture of the person ends that; growing content never does.

/** The direction of a gesture. A wheel or key has a direction, a dragged scroll bar does not. */
export type Direction = 'up' | 'down' | 'either';

interface Follow {
  following: boolean;
  direction: Direction;
  /** Until this time a scroll event counts as the person's. */
  until: number;
}

export const following: Follow = { following: true, direction: 'either', until: 0 };

/** Reports whether a distance from the end in pixels counts as the end. */
export const isNear = (distance: number) => distance <= 24;
/** Milliseconds for which scrolling may go on after a wheel or swipe. */
const lasts = 700;

/**
 * The person begins to scroll. A gesture upwards ends following at once, because a fast stream would otherwise pull the view back before
 * the first scroll event.
 */
export function gesture(state: Follow, direction: Direction, now: number): Follow {
  return { following: state.following && direction !== 'up', direction, until: now + lasts };
}

/** The view was scrolled to `distance` pixels from the end. */
export function scrolled(state: Follow, distance: number, now: number): Follow {
  if (now > state.until) return state;
  const atEnd = isNear(distance);
  if (state.direction === 'up') return state.following ? { ...state, following: false } : state;
  return atEnd === state.following ? state : { ...state, following: atEnd };
}

/** The person asked for the tail. */
export function jump(): Follow {
  return following;
}
