// Reads ACP content blocks. A block of an unknown kind is shown as JSON.

export type Content =
  | { kind: 'text'; text: string }
  | { kind: 'image'; mimeType: string; data: string; bytes: number }
  | { kind: 'audio'; mimeType: string; bytes: number }
  | { kind: 'link'; uri: string; name: string; title: string; size: number | undefined }
  | { kind: 'resource'; uri: string; mimeType: string; text: string | undefined; bytes: number }
  | { kind: 'raw'; value: unknown };

export type Json = Record<string, unknown>;

export function isObject(value: unknown): value is Json {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

function text(value: unknown): string {
  return typeof value === 'string' ? value : '';
}

/** Returns the decoded size of base64 text without decoding the text. */
function decodedSize(base64: string): number {
  const padding = base64.endsWith('==') ? 2 : base64.endsWith('=') ? 1 : 0;
  return Math.max(0, Math.floor((base64.length * 3) / 4) - padding);
}

/** The largest picture that is decoded, in pixels, as in the Go code. A decoded pixel takes four bytes, however few bytes the file has. */
export const mostPixels = 2 ** 26;

/** The image types that are shown. SVG is missing because an SVG may contain scripts and links. */
const images = new Set(['image/png', 'image/jpeg', 'image/gif', 'image/webp']);

/**
 * Reports whether a text is base64. No repetition: an engine that has not compiled the pattern goes back over each letter of it, and ends with
 * an error for a picture of some megabytes.
 */
export const isBase64 = (data: string) => /^[^=]/.test(data) && !/[^A-Za-z0-9+/=]|=[^=]|===/.test(data);

export function readContent(value: unknown): Content {
  if (!isObject(value)) return { kind: 'raw', value };
  switch (value['type']) {
    case 'text':
      return typeof value['text'] === 'string'
        ? { kind: 'text', text: value['text'] }
        : { kind: 'raw', value };
    case 'image': {
      const data = text(value['data']);
      const mimeType = text(value['mimeType']).toLowerCase();
      if (!images.has(mimeType) || !isBase64(data)) return { kind: 'raw', value };
      return { kind: 'image', mimeType, data, bytes: decodedSize(data) };
    }
    case 'audio':
      return { kind: 'audio', mimeType: text(value['mimeType']), bytes: decodedSize(text(value['data'])) };
    case 'resource_link': {
      const uri = text(value['uri']);
      if (!uri) return { kind: 'raw', value };
      const name = text(value['name']) || uri;
      const size = typeof value['size'] === 'number' ? value['size'] : undefined;
      return { kind: 'link', uri, name, title: text(value['title']), size };
    }
    case 'resource': {
      const resource = value['resource'];
      if (!isObject(resource)) return { kind: 'raw', value };
      const body = typeof resource['text'] === 'string' ? resource['text'] : undefined;
      return {
        kind: 'resource',
        uri: text(resource['uri']),
        mimeType: text(resource['mimeType']),
        text: body,
        bytes: body?.length ?? decodedSize(text(resource['blob'])),
      };
    }
    default:
      return { kind: 'raw', value };
  }
}

/** Formats a value as JSON for people. A value that JSON cannot express is named. */
export function pretty(value: unknown): string {
  if (typeof value === 'string') return value;
  return JSON.stringify(value, null, 2) ?? String(value);
}
