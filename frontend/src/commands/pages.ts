import '../strings/keyboard';
import { t } from '../strings/t';

// The manual of docs/. Its texts are part of the program, so that Help works without a network; its pictures are files that are loaded when
// they come into view.

const texts: Record<string, () => Promise<string>> = import.meta.glob<string>(
  [
    '../../../docs/manual/*.md',
    '../../../docs/{acp,api,attachments,discord,extensions,requests,rules,tools}.md',
  ],
  { query: '?raw', import: 'default' },
);

const pictures = new Map(
  Object.entries(
    import.meta.glob<string>('../../../docs/images/*.png', {
      query: '?url',
      import: 'default',
      eager: true,
    }),
  ).map(([path, url]) => [path.replace(/^.*\//, ''), url]),
);

export interface HelpPicture {
  alt: string;
  light: string;
  dark: string;
}

/** A page is a list of texts and pictures. */
type HelpPart = { text: string } | HelpPicture;

interface HelpPage {
  /** The word keys, or the file name in docs/ without its extension. */
  id: string;
  title: string;
}

/** The order of the pages; pages that are not listed follow. */
const order = [
  'manual/first-conversation',
  'manual/keyboard',
  'manual/agents',
  'manual/login',
  'manual/window',
  'manual/sessions',
  'requests',
  'rules',
  'attachments',
  'manual/review',
  'manual/undo',
  'manual/panel',
  'manual/inspector',
];

const idOf = (path: string) => path.replace(/^.*\/docs\//, '').replace(/\.md$/, '');
const files = new Map(Object.entries(texts).map(([path, load]) => [idOf(path), load]));

function titleOf(id: string): string {
  const name = id.replace(/^manual\//, '').replaceAll('-', ' ');
  if (/^(?:acp|api|mcp)$/.test(name)) return name.toUpperCase();
  return name.charAt(0).toUpperCase() + name.slice(1);
}

/** Returns the pages of Help: the keys first, then the manual. */
export function helpPages(): HelpPage[] {
  const place = (id: string) => (order.includes(id) ? order.indexOf(id) : order.length);
  const ids = [...files.keys()].filter((id) => id !== 'manual/README' && id !== 'manual/keyboard');
  ids.sort((a, b) => place(a) - place(b) || titleOf(a).localeCompare(titleOf(b)));
  return [{ id: 'keys', title: t('help.keys') }, ...ids.map((id) => ({ id, title: titleOf(id) }))];
}

export function has(id: string): boolean {
  return id === 'keys' || files.has(id);
}

/** The base address of the manual's links. The host does not exist: Help handles a click on such a link before a browser would. */
export const linkBase = 'https://manual.invalid/';

export async function pageParts(id: string): Promise<HelpPart[]> {
  const text = await files.get(id)?.();
  if (text === undefined) throw new Error(`there is no page ${id}`);
  return parts(text, id);
}

/** Splits a text at its pictures. The text names the light picture; the dark picture is its neighbour. */
export function parts(text: string, id: string): HelpPart[] {
  const made: HelpPart[] = [];
  const pieces = text.split(/^!\[([^\]]*)\]\(([^)\s]+)\)\n?/m);
  for (let at = 0; at < pieces.length; at += 3) {
    const [words = '', alt = '', file = ''] = pieces.slice(at);
    if (words.trim()) made.push({ text: linked(words, id) });
    const name = file.replace(/^.*\//, '');
    const light = pictures.get(name);
    if (light) made.push({ alt, light, dark: pictures.get(name.replace('-light.', '-dark.')) ?? light });
  }
  return made;
}

/** Rewrites links to other pages so that Help can follow them. Links to other files of the source become plain text. */
export function linked(text: string, id: string): string {
  return text.replace(/\[([^\]]+)\]\(([^)\s]+)\)/g, (whole, name: string, to: string) => {
    if (/^[a-z]+:/i.test(to)) return whole;
    const [file, place] = to.split('#');
    const page = file ? idOf(new URL(file, `file:///docs/${id}.md`).pathname) : id;
    if (!has(page)) return name;
    return `[${name}](${linkBase}${page}${place ? `#${place}` : ''})`;
  });
}
