import type { Attachment } from '../api/records';
import { mostPixels } from '../content/blocks';

// What of a file can be shown in the page. The type is the server's, which has looked at the bytes.

export type Shown = 'image' | 'audio' | 'video';

/** An SVG may hold anything, and is never one of these. */
const pictures = new Set(['image/png', 'image/jpeg', 'image/gif', 'image/webp', 'image/avif']);
const mostPicture = 32 * 1024 * 1024;
const mostMedia = 64 * 1024 * 1024;

/** How it can be shown; too_large where it could, but is too much to be held by the page. */
export function shownAs(of: Attachment): Shown | 'too_large' | undefined {
  const { mimeType, size, directory, missing, width = 0, height = 0 } = of;
  if (directory || missing) return undefined;
  const type = (mimeType.split(';')[0] ?? '').trim().toLowerCase();
  if (pictures.has(type)) return size > mostPicture || width * height > mostPixels ? 'too_large' : 'image';
  for (const kind of ['audio', 'video'] as const)
    if (type.startsWith(`${kind}/`)) return size > mostMedia ? 'too_large' : kind;
  return undefined;
}

/** How wide and high a picture may stand in a conversation. */
export const mostWide = 480;
export const mostHigh = 320;

export interface Box {
  width: number;
  height: number;
}

/** The room that a picture takes, known before it is there; pictures are never made larger. */
export function boxOf({ width, height }: Pick<Attachment, 'width' | 'height'>): Box | undefined {
  if (!width || !height || width < 1 || height < 1) return undefined;
  const scale = Math.min(1, mostWide / width, mostHigh / height);
  return { width: Math.max(1, Math.round(width * scale)), height: Math.max(1, Math.round(height * scale)) };
}
