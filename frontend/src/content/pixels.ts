// Counts the pixels of a picture from its first bytes. Like an engine, the functions look at the bytes and not at the declared type. A
// decoded pixel takes four bytes, however few bytes the file has.

/** The number of characters that are read. Cameras put less data before the size of a JPEG. */
const headBytes = 3 * 2 ** 18;

/** Counts the pixels of a picture in base64; undefined where its size is unknown. */
export function pixelsOf(data: string): number | undefined {
  try {
    const most = (headBytes / 3) * 4;
    // Base64 may have line ends; twice the length is enough with line ends removed.
    const head = atob(
      data
        .slice(0, 2 * most)
        .replace(/\s/g, '')
        .slice(0, most),
    );
    return sizes.find(([begin]) => begin.test(head))?.[1](head) || undefined;
  } catch {
    return undefined;
  }
}

/** Counts the pixels of a picture in a blob. */
export async function pixelsIn(blob: Blob): Promise<number | undefined> {
  const reader = new FileReader();
  await new Promise((done, failed) => {
    reader.onload = done;
    reader.onerror = failed;
    reader.readAsDataURL(blob.slice(0, headBytes));
  });
  return pixelsOf(String(reader.result).replace(/^.*,/, ''));
}

// Bytes beyond the end are NaN, and make the result NaN. Shifting bits would turn NaN into 0.

/** Reads a big-endian number. */
function big(head: string, at: number, bytes = 2): number {
  let value = 0;
  for (let n = 0; n < bytes; n++) value = value * 256 + head.charCodeAt(at + n);
  return value;
}

/** Reads a little-endian number. */
function little(head: string, at: number, bytes = 2): number {
  let value = 0;
  while (bytes > 0) value = value * 256 + head.charCodeAt(at + --bytes);
  return value;
}

const bits = 2 ** 14;

const sizes: readonly [RegExp, (head: string) => number][] = [
  [/^\x89PNG[^]{8}IHDR/, (head) => big(head, 16, 4) * big(head, 20, 4)],
  [/^GIF8[79]a/, gif],
  [/^\xff\xd8/, jpeg],
  [/^RIFF[^]{4}WEBPVP8X/, (head) => (little(head, 24, 3) + 1) * (little(head, 27, 3) + 1)],
  [/^RIFF[^]{4}WEBPVP8 /, (head) => (little(head, 26) % bits) * (little(head, 28) % bits)],
  [
    /^RIFF[^]{4}WEBPVP8L/,
    (head) => ((little(head, 21, 4) % bits) + 1) * ((Math.floor(little(head, 21, 4) / bits) % bits) + 1),
  ],
];

/** Engines enlarge the screen to the size of the first frame. */
function gif(head: string): number {
  const flags = head.charCodeAt(10);
  let at = 13 + (flags & 128 ? 6 << (flags & 7) : 0);
  while (head[at] === '!') {
    at += 2;
    while (head.charCodeAt(at) > 0) at += head.charCodeAt(at) + 1;
    at++;
  }
  if (head[at] !== ',') return NaN;
  const side = (n: number) =>
    Math.max(little(head, 6 + n), little(head, at + 1 + n) + little(head, at + 5 + n));
  return side(0) * side(2);
}

function jpeg(head: string): number {
  for (let at = 2; head[at] === '\xff';) {
    while (head[at] === '\xff') at++;
    const marker = head.charCodeAt(at++);
    if (marker >= 0xc0 && marker <= 0xcf && ![0xc4, 0xc8, 0xcc].includes(marker))
      return big(head, at + 3) * big(head, at + 5);
    if (marker < 0xc0 || (marker >= 0xd0 && marker <= 0xda)) return NaN;
    at += big(head, at);
  }
  return NaN;
}
