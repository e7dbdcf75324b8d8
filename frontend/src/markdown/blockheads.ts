import { mount, unmount } from 'svelte';
import BlockHead from './BlockHead.svelte';
import { lookupOf } from './lookup';
import { namedIn, type Named } from './named';
import { candidates } from './paths';
import type { Places } from './places';

// Puts the names of files into the heads of blocks of code that are of files: a link, and a button that writes the block into its file.

/** The largest number of blocks of a part of a text that are looked at. */
const most = 50;

/** Names the blocks in an element. The returned function ends that and removes the names. */
export function nameBlocks(element: HTMLElement, places: Places): () => void {
  let ended = false;
  const ends: (() => void)[] = [];
  for (const block of [...element.querySelectorAll<HTMLElement>('.code[data-info]')].slice(0, most)) {
    const code = (block.querySelector('code')?.textContent ?? '').replace(/\n$/, '');
    const named = namedIn(block.dataset['info'] ?? '', code);
    if (!named) continue;
    void lookupOf(places)
      .find(named)
      .then((path) => {
        if (!ended && block.isConnected) ends.push(name(block, code, named, path, places));
      });
  }
  return () => {
    ended = true;
    ends.splice(0).forEach((end) => end());
  };
}

function name(
  block: HTMLElement,
  code: string,
  named: Named,
  found: string | undefined,
  places: Places,
): () => void {
  const path = found ?? (named.sure ? candidates(named, places)[0] : undefined);
  const head = block.querySelector('.code-head');
  const language = head?.querySelector<HTMLElement>(':scope > span');
  const applies = named.whole && places.writing !== undefined;
  if (!head || !language || path === undefined || (found === undefined && !applies)) return () => undefined;
  const bare = block.classList.contains('bare');
  const place = document.createElement('span');
  place.className = 'named';
  language.after(place);
  language.hidden = true;
  block.classList.remove('bare');
  const mounted = mount(BlockHead, {
    target: place,
    props: { named, path, exists: found !== undefined, code, writing: applies ? places.writing : undefined },
  });
  return () => {
    void unmount(mounted);
    place.remove();
    language.hidden = false;
    block.classList.toggle('bare', bare);
  };
}
