import DOMPurify from 'dompurify';
import { Parser, Renderer, type Token, type Tokens } from 'marked';
import { safeLink } from '../shell/wails';
import type { Formula } from './formula';
import { drawing, extras } from './late';
import type { Places } from './places';
import { t } from '../strings/t';

// Turns a block of Markdown into HTML that is safe to mount: no scripts, no styles, nothing that loads from anywhere. Markup that
// the agent wrote as HTML is shown as text, so that nothing of an answer disappears.

const harmless = /^<\/?(?:br|kbd|sub|sup|b|i|em|strong|code|s|u|mark)\s*\/?>$/i;

function escape(text: string): string {
  return text
    .replaceAll('&', '&amp;')
    .replaceAll('<', '&lt;')
    .replaceAll('>', '&gt;')
    .replaceAll('"', '&quot;')
    .replaceAll("'", '&#39;');
}

/** Code within a list or a quotation, in its box; the code itself is HTML by now. Other code is Code.svelte's. */
function codeBox(info: string | undefined, code: string): string {
  const name = info?.trim().split(/\s+/)[0] ?? '';
  const head = `<div class="code-head"><span>${escape(name)}</span><button type="button" data-copy>${escape(t('code.copy'))}</button></div>`;
  return `<div class="code">${head}<pre tabindex="0"><code>${code}\n</code></pre></div>`;
}

class SafeRenderer extends Renderer {
  /** Where paths lead to; undefined = nowhere. */
  places: Places | undefined;

  /** A path: a link to the file where one can be opened, and else text. Nothing that a browser could open. */
  #path(href: string, text: string): string {
    const title = `title="${escape(href)}"`;
    const paths = this.places && extras.now;
    const ref = paths?.linkRef(href);
    if (!paths || !ref || !this.places || paths.candidates(ref, this.places).length === 0)
      return `<span class="path" ${title}>${text}</span>`;
    return `<a class="path" role="link" tabindex="0" data-path="${escape(href)}" ${title}>${text}</a>`;
  }

  override html(token: Tokens.HTML | Tokens.Tag): string {
    if (harmless.test(token.text.trim())) return token.text;
    const shown = escape(token.text.trimEnd());
    return token.block ? `<p class="html">${shown}</p>` : escape(token.text);
  }

  override code({ text, lang }: Tokens.Code): string {
    return codeBox(lang, escape(text));
  }

  override link({ href, title, tokens }: Tokens.Link): string {
    const text = this.parser.parseInline(tokens);
    const url = safeLink(href);
    if (!url) return this.#path(href, text);
    return `<a href="${escape(url)}" title="${escape(title ? `${title} (${url})` : url)}">${text}</a>`;
  }

  /** Images are never loaded: whoever writes the text would learn of it. */
  override image({ href, text }: Tokens.Image): string {
    const url = safeLink(href);
    const label = escape(t('markdown.image', { name: text || href.slice(0, 120) }));
    return url ? `<a href="${escape(url)}" title="${escape(url)}">${label}</a>` : this.#path(href, label);
  }

  override table(token: Tokens.Table): string {
    return `<div class="table">${super.table(token)}</div>`;
  }

  override listitem(item: Tokens.ListItem): string {
    const made = super.listitem(item);
    return item.task ? made.replace(/^<li>/, '<li class="task">') : made;
  }

  override checkbox({ checked }: Tokens.Checkbox): string {
    return `<span class="check" role="img" aria-label="${escape(t(checked ? 'markdown.checked' : 'markdown.unchecked'))}">${checked ? '☑' : '☐'}</span> `;
  }
}

const tags =
  'a b blockquote br button code del div em h1 h2 h3 h4 h5 h6 hr i kbd li mark ol p pre s span strong sub sup table tbody td th thead tr u ul'.split(
    ' ',
  );
const attributes = [
  'align',
  'aria-label',
  'class',
  'colspan',
  'data-copy',
  'data-path',
  'href',
  'role',
  'rowspan',
  'start',
  'tabindex',
  'title',
  'type',
];

/** The formulas of what is rendered now. The sanitizer sees their places alone: they have been through one of their own. */
const places: string[] = [];

/** A longer formula may be wider than the text, and has a line of its own: no engine breaks it. */
const longestInLine = 120;

/** A formula, or the place where it is put once everything around it is clean: nothing that an agent writes becomes such an element. */
function formula({ raw, tex, display, block }: Formula): string {
  const source = raw.trim();
  const name = block ? 'div' : 'span';
  places.push(
    `<${name} class="math${display || tex.length > longestInLine ? ' display' : ''}" data-source="${escape(source)}"${inMath(tex, display, source)}</${name}>`,
  );
  return `<${name} class="place">${places.length - 1}</${name}>${block ? '\n' : ''}`;
}

/** The rest of its element: drawn, or as it was written until it can be drawn, and where it cannot. */
function inMath(tex: string, display: boolean, source: string): string {
  const draw = tex === '' ? undefined : drawing.now?.draw;
  let why = '';
  if (draw) {
    try {
      return `>${draw(tex, display)}`;
    } catch (thrown) {
      why = ` title="${escape(thrown instanceof Error ? thrown.message : String(thrown))}"`;
    }
  }
  return `${why}><code>${escape(source)}</code>`;
}

const place = /<(?:span|div) class="place">(\d+)<\/(?:span|div)>/g;

const renderer = new SafeRenderer();
const parser = new Parser({
  gfm: true,
  renderer,
  extensions: { childTokens: {}, renderers: { formula: (token) => formula(token as unknown as Formula) } },
});

// Once for all: read anew for every block, the rules would cost more than the block.
DOMPurify.setConfig({
  ALLOWED_TAGS: tags,
  ALLOWED_ATTR: attributes,
  ALLOW_DATA_ATTR: false,
  // The sanitizer takes any value for an address unless the attribute is known to hold none.
  ADD_URI_SAFE_ATTR: ['align', 'colspan', 'data-path', 'rowspan', 'start', 'tabindex', 'type'],
  ALLOWED_URI_REGEXP: /^(?:https?|mailto):/i,
  IN_PLACE: true,
});

/**
 * Where it is parsed: a document in which nothing runs and nothing loads. Given text, the sanitizer makes a document each time, and an
 * engine lets go of those when it collects its garbage: of a text that streams in, that was most of what a page took more each minute.
 */
const inert = document.implementation.createHTMLDocument();

const plainTag =
  /<(\/?)(b|blockquote|br|code|del|em|h[1-6]|hr|i|kbd|li|mark|ol|p|pre|s|strong|sub|sup|table|tbody|td|th|thead|tr|u|ul)(?: align="(?:left|center|right)")?>/y;

/**
 * Whether HTML is text and harmless elements without attributes, each closed within what it was opened in. There is nothing to take out of
 * it, and most of what streams in is no more than that. The sanitizer makes an object of script for each node that it walks past: it was
 * half of all that a stream has an engine collect.
 */
function plain(html: string): boolean {
  const open: (string | undefined)[] = [];
  for (let at = html.indexOf('<'); at >= 0; at = html.indexOf('<', plainTag.lastIndex)) {
    plainTag.lastIndex = at;
    const [, closes, name] = plainTag.exec(html) ?? [];
    if (!name) return false;
    if (name === 'br' || name === 'hr') continue;
    if (!closes) open.push(name);
    else if (open.pop() !== name) return false;
  }
  return open.length === 0;
}

/** HTML without anything that acts or loads. */
export function clean(unsafe: string): string {
  if (plain(unsafe)) return unsafe;
  const host = inert.createElement('div');
  host.innerHTML = unsafe;
  DOMPurify.sanitize(host, { IN_PLACE: true });
  return host.innerHTML;
}

/** What is made, clean, with its formulas. */
function put(make: () => string): string {
  places.length = 0;
  const made = clean(make());
  return places.length === 0 ? made : made.replace(place, (_, at: string) => places[Number(at)] ?? '');
}

/** Renders with paths that lead to files of certain places. */
export function rendering(places: Places | undefined, make: () => string): string {
  renderer.places = places;
  try {
    return make();
  } finally {
    renderer.places = undefined;
  }
}

/** Blocks as HTML. */
export function html(...blocks: readonly Token[]): string {
  return put(() => parser.parse([...blocks]));
}

/** One item of a list as HTML. Nothing stands behind it: a tag that is not closed in it would be opened again there. */
export function itemHtml(item: Tokens.ListItem): string {
  return put(() => renderer.listitem(item).trimEnd());
}

/** What stands within a block, such as the cell of a table, as HTML. */
export function phraseHtml(tokens: readonly Token[]): string {
  return put(() => parser.parseInline([...tokens]));
}
