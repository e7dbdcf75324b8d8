import '../strings/keyboard';
import { t } from '../strings/t';

// The manual, as it stands in docs/: its texts are built in, so that Help works without a network, and so are its pictures, each a file
// that is loaded when it is seen.

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

/** A page is texts with pictures between them. */
export type HelpPart = { text: string } | HelpPicture;

export interface HelpPage {
  /** keys, or the name of its file in docs/ without the ending. */
  id: string;
  title: string;
}

/** What stands in docs/, the beginning first. */
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

/** The pages of Help: the keys, then the manual. */
export function helpPages(): HelpPage[] {
  const place = (id: string) => (order.includes(id) ? order.indexOf(id) : order.length);
  const ids = [...files.keys()].filter((id) => id !== 'manual/README' && id !== 'manual/keyboard');
  ids.sort((a, b) => place(a) - place(b) || titleOf(a).localeCompare(titleOf(b)));
  return [{ id: 'keys', title: t('help.keys') }, ...ids.map((id) => ({ id, title: titleOf(id) }))];
}

export function has(id: string): boolean {
  return id === 'keys' || files.has(id);
}

/** Where links of the manual lead: no address of the network, and Help takes them before anything opens one. */
export const linkBase = 'https://manual.invalid/';

export async function pageParts(id: string): Promise<HelpPart[]> {
  const text = await files.get(id)?.();
  if (text === undefined) throw new Error(`there is no page ${id}`);
  return parts(text, id);
}

/** The text in its parts. What is named is the light picture; the dark one is beside it. */
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

/** The text with its links to other pages made such that Help can follow them; what leads elsewhere in the source is only text. */
export function linked(text: string, id: string): string {
  return text.replace(/\[([^\]]+)\]\(([^)\s]+)\)/g, (whole, name: string, to: string) => {
    if (/^[a-z]+:/i.test(to)) return whole;
    const [file, place] = to.split('#');
    const page = file ? idOf(new URL(file, `file:///docs/${id}.md`).pathname) : id;
    if (!has(page)) return name;
    return `[${name}](${linkBase}${page}${place ? `#${place}` : ''})`;
  });
}
