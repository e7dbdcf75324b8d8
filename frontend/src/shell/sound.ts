import ended from './sounds/ended.wav';
import waits from './sounds/waits.wav';

// The two sounds of the page, which sound.test.ts makes.

export type Sound = 'waits' | 'ended';

const sources: Record<Sound, string> = { waits, ended };

/** Plays a sound, and returns when it has ended. It rejects where the browser does not let the page play. */
export async function play(sound: Sound): Promise<void> {
  const audio = new Audio(sources[sound]);
  const over = new Promise((done) => audio.addEventListener('ended', done, { once: true }));
  await audio.play();
  await over;
}
