import { expect, test, vi } from 'vitest';
vi.mock('../../wailsjs/runtime/runtime', () => ({ OnFileDrop: vi.fn() }));
import { acceptDrops, watchDrops } from './drops';

test('a drag whose element went away does not refuse files for ever', () => {
  watchDrops(document);
  const over = vi.fn();
  acceptDrops({ over, leave: vi.fn(), drop: vi.fn() });
  document.body.dispatchEvent(new Event('dragstart', { bubbles: true })); // and no dragend
  document.body.dispatchEvent(new Event('pointermove', { bubbles: true }));
  const event = new Event('dragover', { bubbles: true, cancelable: true });
  Object.defineProperty(event, 'dataTransfer', { value: { types: ['Files'], items: [], dropEffect: '' } });
  document.body.dispatchEvent(event);
  expect(over).toHaveBeenCalled();
});
