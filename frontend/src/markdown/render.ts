import DOMPurify from 'dompurify';
import { Parser, Renderer, type Token, type Tokens } from 'marked';
import { safeLink } from '../shell/wails';
import { answers } from '../strings/answers';
import { t } from '../strings/t';
import { addTexts } from '../strings/texts';
import { goesLeft } from './direction';
import type { Formula } from './formula';
import { languageOf } from './highlight';
import { drawing, extras } from './late';
import type { Places } from './places';
import { hasLongLine, wraps } from './wrapping';

addTexts(answers);

// Renders Markdown to HTML that is safe to mount: no scripts, no styles, nothing that loads from anywhere. HTML in a message is shown as
// text, so that no part of the message disappears.

const harmless = /^<\/?(?:br|kbd|sub|sup|b|i|em|strong|code|s|u|mark)\s*\/?>$/i;

function escape(text: string): string {
  return text
    .replaceAll('&', '&amp;')
    .replaceAll('<', '&lt;')
    .replaceAll('>', '&gt;')
    .replaceAll('"', '&quot;')
    .replaceAll("'", '&#39;');
}

/** Longer inline code may be broken at the end of a line. */
const longestName = 40;

/** Renders code within a list or quotation; boxes.ts adds its colours. Other code is rendered by Code.svelte. */
function codeBox(info: string | undefined, code: string): string {
  const name = info?.trim().split(/\s+/)[0] ?? '';
  const language = languageOf(info);
  const button = (what: string, label: string, more = '') =>
    `<button type="button" class="icon ${what}" data-${what}${more} title="${escape(label)}" aria-label="${escape(label)}"></button>`;
  const wrap = hasLongLine(code) ? button('wrap', t('code.wrap'), ` aria-pressed="${wraps()}"`) : '';
  const head = `<div class="code-head"><span>${escape(name)}</span>${wrap}${button('copy', t('code.copy'))}</div>`;
  const coloured = language ? ` data-language="${escape(language)}"` : '';
  return `<div class="code${name === '' ? ' bare' : ''}">${head}<pre tabindex="0"><code${coloured}>${escape(code)}\n</code></pre></div>`;
}

/** Tells an element whose text goes from right to left, given what it was made of. */
function aimed(made: string, raw: string): string {
  return goesLeft(raw) ? made.replace(/^(<\w+)/, '$1 dir="rtl"') : made;
}

class SafeRenderer extends Renderer {
  /** The directories for paths; undefined where files cannot be opened. */
  places: Places | undefined;

  /** Renders a path as a link that opens the file, otherwise as text. A browser cannot follow the link. */
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

  override paragraph(token: Tokens.Paragraph): string {
    return aimed(super.paragraph(token), token.raw);
  }

  override heading(token: Tokens.Heading): string {
    return aimed(super.heading(token), token.text);
  }

  override blockquote(token: Tokens.Blockquote): string {
    return aimed(super.blockquote(token), token.text);
  }

  override list(token: Tokens.List): string {
    return aimed(super.list(token), token.items[0]?.text ?? '');
  }

  override code({ text, lang }: Tokens.Code): string {
    return codeBox(lang, text);
  }

  override codespan(token: Tokens.Codespan): string {
    const made = super.codespan(token);
    return token.text.length > longestName ? made.replace('<code', '<code class="long"') : made;
  }

  override link({ href, title, tokens }: Tokens.Link): string {
    const text = this.parser.parseInline(tokens);
    const url = safeLink(href);
    if (!url) return this.#path(href, text);
    return `<a href="${escape(url)}" title="${escape(title ? `${title} (${url})` : url)}">${text}</a>`;
  }

  /** Images are never loaded, because the author of the text would learn that it was read. */
  override image({ href, text }: Tokens.Image): string {
    const url = safeLink(href);
    const label = escape(t('markdown.image', { name: text || href.slice(0, 120) }));
    return url ? `<a href="${escape(url)}" title="${escape(url)}">${label}</a>` : this.#path(href, label);
  }

  override table(token: Tokens.Table): string {
    return aimed(`<div class="table">${super.table(token)}</div>`, token.raw);
  }

  override listitem(item: Tokens.ListItem): string {
    const made = super.listitem(item);
    return item.task ? made.replace(/^<li>/, '<li class="task">') : made;
  }

  override checkbox({ checked }: Tokens.Checkbox): string {
    return `<span class="check${checked ? ' done' : ''}" role="img" aria-label="${escape(t(checked ? 'markdown.checked' : 'markdown.unchecked'))}">${checked ? '☑' : '☐'}</span> `;
  }
}

const tags =
  'a b blockquote br button code del div em h1 h2 h3 h4 h5 h6 hr i kbd li mark ol p pre s span strong sub sup table tbody td th thead tr u ul'.split(
    ' ',
  );
const attributes = [
  'align',
  'aria-label',
  'aria-pressed',
  'class',
  'colspan',
  'data-copy',
  'data-language',
  'data-path',
  'data-wrap',
  'dir',
  'href',
  'role',
  'rowspan',
  'start',
  'tabindex',
  'title',
  'type',
];

/** The formulas of the current rendering. The sanitizer sees only their placeholders; formulas.ts has sanitized the formulas. */
const places: string[] = [];

/** A longer formula gets a line of its own: it may be wider than the text, and no engine breaks it. */
const longestInLine = 120;

/** Renders a formula, or its placeholder until the rest is sanitized. Text of an agent cannot make such an element. */
function formula({ raw, tex, display, block }: Formula): string {
  const source = raw.trim();
  const name = block ? 'div' : 'span';
  places.push(
    `<${name} class="math${display || tex.length > longestInLine ? ' display' : ''}" data-source="${escape(source)}"${inMath(tex, display, source)}</${name}>`,
  );
  return `<${name} class="place">${places.length - 1}</${name}>${block ? '\n' : ''}`;
}

/** Returns the content of the element: the drawn formula, or the source where it cannot be drawn yet or at all. */
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

// Set once: reading the configuration for every block would cost more than the block.
DOMPurify.setConfig({
  ALLOWED_TAGS: tags,
  ALLOWED_ATTR: attributes,
  ALLOW_DATA_ATTR: false,
  // The sanitizer checks the value of every attribute as an address, except for the attributes in this list.
  ADD_URI_SAFE_ATTR: [
    'align',
    'colspan',
    'data-language',
    'data-path',
    'dir',
    'rowspan',
    'start',
    'tabindex',
    'type',
  ],
  ALLOWED_URI_REGEXP: /^(?:https?|mailto):/i,
  IN_PLACE: true,
});

/**
 * A document without scripts and loading, in which HTML is parsed. Given a string, the sanitizer would create a document each time; those
 * documents were most of the memory growth of a page with streaming text.
 */
const inert = document.implementation.createHTMLDocument();

const plainTag =
  /<(\/?)(b|blockquote|br|code|del|em|h[1-6]|hr|i|kbd|li|mark|ol|p|pre|s|strong|sub|sup|table|tbody|td|th|thead|tr|u|ul)(?: dir="rtl"| align="(?:left|center|right)")?>/y;

/**
 * Reports whether HTML consists of text and correctly nested harmless elements without attributes. Such HTML, which most streamed text is,
 * needs no sanitizer. The sanitizer creates a script object for each node; these objects were half of the garbage of a stream.
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

/** Returns HTML without anything that acts or loads. */
export function clean(unsafe: string): string {
  if (plain(unsafe)) return unsafe;
  const host = inert.createElement('div');
  host.innerHTML = unsafe;
  DOMPurify.sanitize(host, { IN_PLACE: true });
  return host.innerHTML;
}

/** Calls make, sanitizes the HTML, and inserts the formulas. */
function put(make: () => string): string {
  places.length = 0;
  const made = clean(make());
  return places.length === 0 ? made : made.replace(place, (_, at: string) => places[Number(at)] ?? '');
}

/** Renders with links to files of the given directories. */
export function rendering(places: Places | undefined, make: () => string): string {
  renderer.places = places;
  try {
    return make();
  } finally {
    renderer.places = undefined;
  }
}

/** Renders blocks to HTML. */
export function html(...blocks: readonly Token[]): string {
  return put(() => parser.parse([...blocks]));
}

/** Renders a list item to HTML. An unclosed tag must end with the item, so nothing follows the item. */
export function itemHtml(item: Tokens.ListItem): string {
  return put(() => renderer.listitem(item).trimEnd());
}

/** Renders inline tokens, such as those of a table cell, to HTML. */
export function phraseHtml(tokens: readonly Token[]): string {
  return put(() => parser.parseInline([...tokens]));
}
