import { vi } from 'vitest';
import { stopComposingKeys } from '../ui/composition';

// A part of the page that is loaded when it is wanted is compiled then, by one process for all tests: on a busy machine that takes more
// than the second which is waited for by itself.
const { waitFor } = vi;
vi.waitFor = (check, options = 10_000) => waitFor(check, options);

// What jsdom lacks, most of it because it lays nothing out, for every test alike: the files share a page, and Svelte keeps the first
// ResizeObserver that it is given, so that one of a single file would serve all that happen to run after it.
class Never {
  observe = () => undefined;
  unobserve = () => undefined;
  disconnect = () => undefined;
  takeRecords = () => [];
}
Object.assign(globalThis, {
  ResizeObserver: Never,
  IntersectionObserver: Never,
  CSS: { escape: (text: string) => text },
});
// Some tests need no page.
if ('Element' in globalThis) {
  stopComposingKeys(window); // as main.ts does
  for (const name of ['scrollIntoView', 'scrollTo'] as const) Element.prototype[name] = () => undefined;
  HTMLDialogElement.prototype.showModal = function () {
    this.open = true;
  };
}
