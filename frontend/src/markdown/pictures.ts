import { mostPixels } from '../content/blocks';
import { pixelsIn, pixelsOf } from '../content/pixels';
import { t } from '../strings/t';
import { errorText } from '../ui/format';
import { extras } from './late';
import type { Places } from './places';

// Shows the pictures of a message: files of the session's directories, and those whose bytes stand in the text. What is elsewhere is fetched
// when a person asks for it, by way of the server. Until a picture is shown, and where it cannot be, its place has a link, or its name.

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
  if (places?.webPicture)
    for (const place of element.querySelectorAll<HTMLElement>('.picture[data-remote]'))
      offer(place, places.webPicture, end.signal, made);
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

/** The pictures of elsewhere that were asked for: one that leaves the page and comes back is shown without a further question. */
const asked = new Map<string, Blob>();
/** The number of those that are kept. */
const mostAsked = 20;

/** Puts a button beside the name of a picture, which fetches the picture. */
function offer(
  place: HTMLElement,
  fetch: NonNullable<Places['webPicture']>,
  signal: AbortSignal,
  made: string[],
): void {
  const address = place.dataset['remote'] ?? '';
  const host = place.querySelector('.host')?.textContent ?? '';
  const held = asked.get(address);
  if (held) {
    void reveal(place, held, signal, made);
    return;
  }
  const button = document.createElement('button');
  const said = document.createElement('span');
  button.type = 'button';
  button.className = 'words';
  button.textContent = t('remote.show');
  button.title = t('remote.why', { host });
  button.setAttribute('aria-label', t('remote.show.of', { host }));
  said.className = 'said';
  said.role = 'status';
  place.append(button, said);
  signal.addEventListener('abort', () => [button, said].forEach((one) => one.remove()));
  button.addEventListener('click', async () => {
    button.disabled = true;
    said.textContent = t('remote.loading');
    try {
      const blob = await fetch(address, signal);
      asked.set(address, blob);
      for (const old of asked.keys()) {
        if (asked.size <= mostAsked) break;
        asked.delete(old);
      }
      if (await reveal(place, blob, signal, made)) [button, said].forEach((one) => one.remove());
      else said.textContent = t('remote.large');
    } catch (thrown) {
      if (signal.aborted) return;
      said.textContent = errorText(thrown);
      button.disabled = false;
    }
  });
}

/** Shows a fetched picture in its place. It returns false for one that is too large to be decoded. */
async function reveal(place: HTMLElement, blob: Blob, signal: AbortSignal, made: string[]): Promise<boolean> {
  const pixels = await pixelsIn(blob);
  if (pixels === undefined || pixels > mostPixels || signal.aborted) return false;
  const source = URL.createObjectURL(blob);
  made.push(source);
  await put(place, source, signal);
  place.classList.remove('remote');
  place.querySelector('.host')?.remove();
  return true;
}
