import '../strings/keyboard';
import { t } from '../strings/t';

// The manual, as it stands in docs/: its texts are built in, so that Help works without a network. Pictures stay in docs/.

const texts: Record<string, () => Promise<string>> = import.meta.glob<string>(
  [
    '../../../docs/manual/*.md',
    '../../../docs/{acp,api,attachments,discord,extensions,requests,rules,tools}.md',
  ],
  { query: '?raw', import: 'default' },
);

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

export async function pageText(id: string): Promise<string> {
  const text = await files.get(id)?.();
  if (text === undefined) throw new Error(`there is no page ${id}`);
  return linked(text, id);
}

/** The text with its links to other pages made such that Help can follow them; what leads elsewhere in the source is only text. */
export function linked(text: string, id: string): string {
  return text
    .replace(/^!\[[^\]]*\]\([^)]*\)\n?/gm, '')
    .replace(/\[([^\]]+)\]\(([^)\s]+)\)/g, (whole, name: string, to: string) => {
      if (/^[a-z]+:/i.test(to)) return whole;
      const [file, place] = to.split('#');
      const page = file ? idOf(new URL(file, `file:///docs/${id}.md`).pathname) : id;
      if (!has(page)) return name;
      return `[${name}](${linkBase}${page}${place ? `#${place}` : ''})`;
    });
}
