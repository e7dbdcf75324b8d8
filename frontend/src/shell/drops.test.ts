import { expect, test } from 'vitest';
import { refuseDrops } from './drops';

/** A drag event as a browser makes it; jsdom has no DragEvent. */
function drag(
  type: string,
  ...types: string[]
): Event & { dataTransfer: { types: string[]; dropEffect: string } } {
  const event = new Event(type, { bubbles: true, cancelable: true });
  return Object.assign(event, { dataTransfer: { types, dropEffect: 'copy' } });
}

test('files and addresses from outside are refused, text is not', () => {
  refuseDrops(document);
  for (const type of ['dragenter', 'dragover', 'drop']) {
    for (const [offer, refused] of [
      [['Files'], true],
      [['text/uri-list', 'text/html'], true],
      [['text/plain', 'text/html'], false],
    ] as const) {
      const event = drag(type, ...offer);
      document.body.dispatchEvent(event);
      expect([event.defaultPrevented, event.dataTransfer.dropEffect]).toEqual([
        refused,
        refused ? 'none' : 'copy',
      ]);
    }
  }
});
