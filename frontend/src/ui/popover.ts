import type { Attachment } from 'svelte/attachments';

interface Anchored {
  anchor: () => HTMLElement | undefined;
  /** The preferred side. The element flips when there is no room. */
  side?: 'above' | 'below';
  align?: 'start' | 'end';
  close: () => void;
}

const margin = 8;
const distance = 4;

/** Places an element beside its anchor inside the window, and closes it on a press elsewhere or when its surroundings scroll. */
export function anchored({
  anchor,
  side = 'below',
  align = 'start',
  close,
}: Anchored): Attachment<HTMLElement> {
  return (element) => {
    const place = () => {
      const at = anchor()?.getBoundingClientRect();
      if (!at) return;
      const above = at.top - distance - margin;
      const below = window.innerHeight - at.bottom - distance - margin;
      const wanted = element.scrollHeight;
      const up =
        side === 'above'
          ? above >= Math.min(wanted, 160) || above > below
          : below < Math.min(wanted, 160) && above > below;
      element.style.maxHeight = `${Math.max(80, up ? above : below)}px`;
      const width = element.offsetWidth;
      const left = align === 'end' ? at.right - width : at.left;
      element.style.left = `${Math.max(margin, Math.min(left, window.innerWidth - width - margin))}px`;
      element.style.top = up ? 'auto' : `${at.bottom + distance}px`;
      element.style.bottom = up ? `${window.innerHeight - at.top + distance}px` : 'auto';
    };
    const press = (event: PointerEvent) => {
      const target = event.target as Node;
      if (!element.contains(target) && !anchor()?.contains(target)) close();
    };
    const scroll = (event: Event) => {
      if (!element.contains(event.target as Node)) place();
    };
    // Waits a frame, because later resize listeners may still move the anchor, for example by showing the sidebar again.
    let frame = 0;
    const resized = () => {
      place();
      cancelAnimationFrame(frame);
      frame = requestAnimationFrame(place);
    };
    place();
    const grown = new ResizeObserver(place);
    grown.observe(element);
    document.addEventListener('pointerdown', press, true);
    document.addEventListener('scroll', scroll, true);
    window.addEventListener('resize', resized);
    return () => {
      grown.disconnect();
      document.removeEventListener('pointerdown', press, true);
      document.removeEventListener('scroll', scroll, true);
      window.removeEventListener('resize', resized);
      cancelAnimationFrame(frame);
    };
  };
}
