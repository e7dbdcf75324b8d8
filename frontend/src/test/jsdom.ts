import { vi } from 'vitest';
import { stopComposingKeys } from '../ui/composition';

// A part of the page that is loaded on demand is compiled by a single process for all tests. On a busy machine that takes longer than
// vitest's default of one second.
const { waitFor } = vi;
vi.waitFor = (check, options = 10_000) => waitFor(check, options);

// Replaces what jsdom lacks, for all tests alike: test files share a page, and Svelte keeps the first ResizeObserver that it finds.
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
// Some tests run without a page.
if ('Element' in globalThis) {
  stopComposingKeys(window); // as main.ts does
  for (const name of ['scrollIntoView', 'scrollTo'] as const) Element.prototype[name] = () => undefined;
  HTMLDialogElement.prototype.showModal = function () {
    this.open = true;
  };
}
