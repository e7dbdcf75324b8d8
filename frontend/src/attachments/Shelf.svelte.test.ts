import { flushSync, mount, tick } from 'svelte';
import { expect, test, vi } from 'vitest';
import '../strings/attachments';
import { Chips } from './chips.svelte';
import Shelf from './Shelf.svelte';

test('the focus goes on when an upload is cancelled', async () => {
  const client = {
    patchSession: vi.fn(() => Promise.resolve({})),
    call: () => new Promise(() => undefined),
    headers: () => new Headers(),
  } as never;
  const chips = new Chips({ id: 's1' }, client);
  chips.addPaths(['/a']);
  const leave = vi.fn();
  mount(Shelf, { target: document.body, props: { chips, agent: 'x', leave } });
  flushSync();
  const button = document.querySelector<HTMLButtonElement>('[aria-busy] button');
  button?.focus();
  button?.click();
  await tick();
  expect(leave).toHaveBeenCalled();
});
