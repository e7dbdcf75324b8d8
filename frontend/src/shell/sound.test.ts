// @vitest-environment node
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';

// Makes the sounds: UPDATE=1 vitest run src/shell/sound.test.ts writes them.

const rate = 16_000;

/** Returns soft notes, each a frequency with the second at which it begins, as a WAV file of one channel. */
function sound(seconds: number, notes: readonly (readonly [frequency: number, from: number])[]): Buffer {
  const samples = Math.round(seconds * rate);
  const data = Buffer.alloc(samples * 2);
  for (let n = 0; n < samples; n++) {
    let value = 0;
    for (const [frequency, from] of notes) {
      const t = n / rate - from;
      if (t < 0) continue;
      const wave = Math.sin(2 * Math.PI * frequency * t) + 0.25 * Math.sin(4 * Math.PI * frequency * t);
      value += wave * Math.min(1, t / 0.012) * Math.exp(-t / 0.09);
    }
    const fades = Math.min(1, (samples - n) / (0.03 * rate)); // so that the end does not click
    data.writeInt16LE(Math.round(0.09 * 32_767 * value * fades), n * 2);
  }
  const head = Buffer.alloc(44);
  head.write('RIFF', 0);
  head.writeUInt32LE(36 + data.length, 4);
  head.write('WAVEfmt ', 8);
  head.writeUInt32LE(16, 16);
  head.writeUInt16LE(1, 20); // PCM
  head.writeUInt16LE(1, 22);
  head.writeUInt32LE(rate, 24);
  head.writeUInt32LE(rate * 2, 28);
  head.writeUInt16LE(2, 32);
  head.writeUInt16LE(16, 34);
  head.write('data', 36);
  head.writeUInt32LE(data.length, 40);
  return Buffer.concat([head, data]);
}

test.each([
  [
    'waits',
    sound(0.42, [
      [659.26, 0],
      [880, 0.11],
    ]),
  ], // up, as a question
  [
    'ended',
    sound(0.36, [
      [587.33, 0],
      [440, 0.1],
    ]),
  ], // down, as a sentence
])('the sound %s is what is made here: short and quiet', (name, made) => {
  const file = join(import.meta.dirname, 'sounds', `${name}.wav`);
  if (process.env['UPDATE']) writeFileSync(file, made);
  const stored = readFileSync(file);
  expect(stored.length).toBe(made.length);
  expect(stored.length).toBeLessThan(16_000);
  let loudest = 0;
  let furthest = 0;
  for (let at = 44; at < stored.length; at += 2) {
    loudest = Math.max(loudest, Math.abs(stored.readInt16LE(at)));
    furthest = Math.max(furthest, Math.abs(stored.readInt16LE(at) - made.readInt16LE(at)));
  }
  expect(stored.subarray(0, 44).equals(made.subarray(0, 44))).toBe(true);
  expect(furthest).toBeLessThan(2); // the last bit of a sine may differ among machines
  expect(loudest).toBeGreaterThan(1_500);
  expect(loudest).toBeLessThan(5_000);
});
