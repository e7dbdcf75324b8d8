import { flushSync, mount, unmount } from 'svelte';
import { afterEach, expect, test, vi } from 'vitest';
import Edge from './Edge.svelte';

let ended: (() => void) | undefined;

afterEach(() => {
  ended?.();
  ended = undefined;
});

function edgeAt(at: 'left' | 'right' | 'top', resize: (wanted: number) => void, reset = () => undefined) {
  const component = mount(Edge, {
    target: document.body,
    props: { label: 'Width', at, size: 200, least: 100, most: 400, resize, reset },
  });
  ended = () => void unmount(component);
  flushSync();
  const edge = document.querySelector<HTMLElement>('[role=separator]');
  if (!edge) throw new Error('no edge');
  edge.setPointerCapture = () => undefined;
  return edge;
}

const press = (edge: HTMLElement, key: string) => {
  const event = new KeyboardEvent('keydown', { key, cancelable: true, bubbles: true });
  edge.dispatchEvent(event);
  return event.defaultPrevented;
};

test.each([
  ['right', 'ArrowRight', 'ArrowLeft', 'vertical', 1],
  ['left', 'ArrowLeft', 'ArrowRight', 'vertical', -1],
  ['top', 'ArrowUp', 'ArrowDown', 'horizontal', -1],
] as const)(
  'an edge at the %s follows the keys and the pointer',
  (at, larger, smaller, orientation, sign) => {
    const resize = vi.fn();
    const edge = edgeAt(at, resize);
    expect(edge.getAttribute('aria-orientation')).toBe(orientation);
    expect([press(edge, larger), press(edge, smaller), press(edge, 'Enter')]).toEqual([true, true, false]);
    expect(resize.mock.calls).toEqual([[216], [184]]);
    resize.mockClear();
    const point = (kind: string, to: number) =>
      edge.dispatchEvent(new PointerEvent(kind, { clientX: to, clientY: to, bubbles: true }));
    point('pointerdown', 50);
    point('pointermove', 80);
    edge.dispatchEvent(new Event('lostpointercapture'));
    point('pointermove', 300);
    expect(resize.mock.calls).toEqual([[200 + sign * 30]]);
  },
);

test('a double click restores the usual size', () => {
  const reset = vi.fn();
  edgeAt('left', vi.fn(), reset).dispatchEvent(new MouseEvent('dblclick', { bubbles: true }));
  expect(reset).toHaveBeenCalledOnce();
});
