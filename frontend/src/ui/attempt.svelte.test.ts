import { expect, test } from 'vitest';
import { Attempt } from './attempt.svelte';

/** Work that ends when the test says so, or when it is aborted. */
function work() {
  let resolve = (): void => undefined;
  let reject = (_: Error): void => undefined;
  const promise = new Promise<void>((done, fail) => {
    resolve = done;
    reject = fail;
  });
  let signal: AbortSignal | undefined;
  const run = async (given: AbortSignal) => {
    signal = given;
    given.addEventListener('abort', () => reject(new Error('aborted')));
    await promise;
  };
  return { run, resolve, reject, signal: () => signal };
}

test('a second press aborts the work, which is no failure', async () => {
  const failures: unknown[] = [];
  const attempt = new Attempt((thrown) => failures.push(thrown));
  const first = work();
  const running = attempt.press(first.run);
  expect(attempt.running).toBe(true);
  const second = work();
  await attempt.press(second.run);
  expect(first.signal()?.aborted).toBe(true);
  expect(second.signal()).toBeUndefined();
  await running;
  expect(attempt.running).toBe(false);
  expect(failures).toEqual([]);
});

test('what fails is told, and the next press begins anew', async () => {
  const failures: unknown[] = [];
  const attempt = new Attempt((thrown) => failures.push(thrown));
  const first = work();
  const running = attempt.press(first.run);
  const reason = new Error('refused');
  first.reject(reason);
  await running;
  expect(failures).toEqual([reason]);
  const second = work();
  const again = attempt.press(second.run);
  expect(attempt.running).toBe(true);
  second.resolve();
  await again;
  expect(attempt.running).toBe(false);
  expect(failures).toHaveLength(1);
});
