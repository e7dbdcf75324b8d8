// Whether the view follows the tail. Growth of the content never ends that; only a gesture of the person does.

/** Where a gesture leads: a wheel and the keys say it, a dragged scroll bar does not. */
export type Direction = 'up' | 'down' | 'either';

export interface Follow {
  following: boolean;
  direction: Direction;
  /** Until when a scroll counts as the person's. */
  until: number;
}

export const following: Follow = { following: true, direction: 'either', until: 0 };

/** Whether so many pixels from the end counts as being there. */
export const isNear = (distance: number) => distance <= 24;
/** Scrolling goes on for a while after a wheel or a swipe. */
const lasts = 700;

/** The person begins to scroll. Upwards ends following at once: waiting for the scroll would let a fast stream pull the view back. */
export function gesture(state: Follow, direction: Direction, now: number): Follow {
  return { following: state.following && direction !== 'up', direction, until: now + lasts };
}

/** The view was scrolled and is `distance` pixels from the end. */
export function scrolled(state: Follow, distance: number, now: number): Follow {
  if (now > state.until) return state;
  const atEnd = isNear(distance);
  if (state.direction === 'up') return state.following ? { ...state, following: false } : state;
  return atEnd === state.following ? state : { ...state, following: atEnd };
}

/** The person asks for the tail. */
export function jump(): Follow {
  return following;
}
