import type { Attachment } from '../api/records';
import { mostPixels } from '../content/blocks';

// Decides which attachments the page can show. The server has set their type after it read the bytes.

type Shown = 'image' | 'audio' | 'video';

/** SVG is not in the set, because an SVG may contain scripts and links. */
const pictures = new Set(['image/png', 'image/jpeg', 'image/gif', 'image/webp', 'image/avif']);
const mostPicture = 32 * 1024 * 1024;
const mostMedia = 64 * 1024 * 1024;

/** Returns the way to show a file; too_large for a picture that would take too much memory. */
export function shownAs(of: Attachment): Shown | 'too_large' | undefined {
  const { mimeType, size, directory, missing, width = 0, height = 0 } = of;
  if (directory || missing) return undefined;
  const type = (mimeType.split(';')[0] ?? '').trim().toLowerCase();
  if (pictures.has(type)) return size > mostPicture || width * height > mostPixels ? 'too_large' : 'image';
  for (const kind of ['audio', 'video'] as const)
    if (type.startsWith(`${kind}/`)) return size > mostMedia ? 'too_large' : kind;
  return undefined;
}

/** The largest size of a picture in the transcript. */
const mostWide = 480;
const mostHigh = 320;

interface Box {
  width: number;
  height: number;
}

/** Returns the size at which a picture is shown, before it is loaded. Pictures are never enlarged. */
export function boxOf({ width, height }: Pick<Attachment, 'width' | 'height'>): Box | undefined {
  if (!width || !height || width < 1 || height < 1) return undefined;
  const scale = Math.min(1, mostWide / width, mostHigh / height);
  return { width: Math.max(1, Math.round(width * scale)), height: Math.max(1, Math.round(height * scale)) };
}
