import { mostPixels } from '../content/blocks';
import { pixelsIn, pixelsOf } from '../content/pixels';
import { extras } from './late';
import type { Places } from './places';

// Shows the pictures of a message: files of the session's directories, and those whose bytes stand in the text. Nothing is fetched from
// elsewhere. Until a picture is shown, and where it cannot be, its place has a link, or its name.

/** A larger file is not shown. */
const mostBytes = 16 * 2 ** 20;

/** Shows the pictures in an element. The returned function ends that and frees them. */
export function showPictures(element: HTMLElement, places: Places | undefined): () => void {
  const end = new AbortController();
  const made: string[] = [];
  for (const place of element.querySelectorAll<HTMLElement>('.picture[data-picture]')) {
    const from = place.dataset['picture'] ?? '';
    const address = from.startsWith('data:') ? inText(from) : inFile(from, places, end.signal, made);
    void address.then((source) => put(place, source, end.signal)).catch(() => undefined); // the link stays
  }
  return () => {
    end.abort();
    for (const one of made) URL.revokeObjectURL(one);
  };
}

async function inText(source: string): Promise<string | undefined> {
  const pixels = pixelsOf(source.slice(source.indexOf(',') + 1));
  return pixels !== undefined && pixels <= mostPixels ? source : undefined;
}

async function inFile(
  name: string,
  places: Places | undefined,
  signal: AbortSignal,
  made: string[],
): Promise<string | undefined> {
  await extras.load();
  const ref = extras.now?.linkRef(name);
  if (!ref || !places?.picture) return undefined;
  for (const path of extras.now?.candidates(ref, places) ?? []) {
    const blob = await places.picture(path, signal).catch(() => undefined);
    if (!blob) continue;
    const pixels = blob.size > mostBytes ? undefined : await pixelsIn(blob);
    if (pixels === undefined || pixels > mostPixels || signal.aborted) return undefined;
    const address = URL.createObjectURL(blob);
    made.push(address);
    return address;
  }
  return undefined;
}

/** Puts the picture into its place once it is decoded, so that the text below moves once. */
async function put(place: HTMLElement, source: string | undefined, signal: AbortSignal): Promise<void> {
  if (source === undefined) return;
  const image = new Image();
  image.src = source;
  image.alt = place.dataset['name'] ?? '';
  await image.decode();
  if (signal.aborted) return;
  (place.querySelector('a') ?? place).replaceChildren(image);
}
