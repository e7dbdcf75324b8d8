/** The time by which ages are shown. The frame sets it every half minute, and when the page comes to the front. */
export class WallClock {
  now = $state(Date.now());
}
