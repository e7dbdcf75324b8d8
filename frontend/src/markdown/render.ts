import DOMPurify from 'dompurify';
import { Parser, Renderer, type Token, type Tokens } from 'marked';
import { isBase64 } from '../content/blocks';
import { safeLink } from '../shell/wails';
import { answers } from '../strings/answers';
import { t } from '../strings/t';
import { addTexts } from '../strings/texts';
import { goesLeft } from './direction';
import type { Formula } from './formula';
import { languageOf } from './highlight';
import { drawing, extras } from './late';
import type { Fold, Note, NoteRef } from './notes';
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

/** Reports whether the text of a fence is a formula. */
export function isMath(info: string | undefined): boolean {
  return info?.trim() === 'math';
}

const pictureFile = /\.(?:png|jpe?g|gif|webp)$/i;
const pictureInText = /^data:image\/(?:png|jpeg|gif|webp);base64,/;
/** Returns the host of an address from which a picture may be fetched, in letters that cannot be taken for others. */
function hostOf(url: string): string | undefined {
  try {
    const { protocol, hostname } = new URL(url);
    return protocol === 'https:' ? hostname : undefined;
  } catch {
    return undefined;
  }
}

/** Four megabytes in base64, as of the pictures that agents send. */
const longestPicture = 5_600_000;

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
  return `<div class="code${name === '' ? ' bare' : ''}" data-info="${escape(info ?? '')}">${head}<pre tabindex="0"><code${coloured}>${escape(code)}\n</code></pre></div>`;
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

  override code({ raw, text, lang }: Tokens.Code): string {
    return isMath(lang)
      ? formula({ type: 'formula', raw, tex: text, display: true, block: true })
      : codeBox(lang, text);
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

  /**
   * Images are not loaded from elsewhere, because the author of the text would learn that it was read. pictures.ts shows files and those
   * whose bytes stand in the text, and one from elsewhere when a person asks for it.
   */
  override image({ href, text }: Tokens.Image): string {
    const url = safeLink(href);
    const inText =
      href.length <= longestPicture && pictureInText.test(href) && isBase64(href.replace(pictureInText, ''));
    const name = text || (inText ? '' : href.slice(0, 120));
    const label = escape(name === '' ? t('markdown.picture') : t('markdown.image', { name }));
    if (url) {
      const named = `<a href="${escape(url)}" title="${escape(url)}">${label}</a>`;
      const host = this.places?.webPicture && hostOf(url);
      if (!host) return named;
      return `<span class="picture remote" data-remote="${escape(url)}" data-name="${escape(text || t('markdown.picture'))}">${named}<span class="host">${escape(host)}</span></span>`;
    }
    const link = inText ? label : this.#path(href, label);
    const shown = inText || (link.startsWith('<a') && pictureFile.test(href));
    if (!shown) return link;
    return `<span class="picture" data-picture="${escape(href)}" data-name="${escape(name || t('markdown.picture'))}">${link}</span>`;
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
  'a b blockquote br button code del details div em h1 h2 h3 h4 h5 h6 hr i kbd li mark ol p pre s span strong sub summary sup table tbody td th thead tr u ul'.split(
    ' ',
  );
const attributes = [
  'align',
  'aria-label',
  'aria-pressed',
  'class',
  'colspan',
  'data-back',
  'data-copy',
  'data-info',
  'data-language',
  'data-note',
  'data-name',
  'data-noted',
  'data-path',
  'data-picture',
  'data-remote',
  'data-wrap',
  'dir',
  'href',
  'open',
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

/** Renders a reference as a button that goes to its footnote, which may be in another block. */
function noteRef({ id, notes }: NoteRef): string {
  const name = notes.nameOf(id);
  const label = escape(t('note.go', { name }));
  return `<sup><button type="button" class="ref" data-note="${escape(id)}" aria-label="${label}" title="${label}">${escape(name)}</button></sup>`;
}

function note(one: Note): string {
  const { id, notes, tokens } = one;
  const label = escape(t('note.back'));
  const back = `<button type="button" class="ref" data-back="${escape(id)}" aria-label="${label}" title="${label}">↩</button>`;
  return `<div class="note" tabindex="-1" data-noted="${escape(id)}"><span class="number">${escape(notes.nameOf(id))}</span><div>${parser.parse(tokens)}</div>${back}</div>`;
}

function fold({ open, summary, tokens }: Fold): string {
  const name = parser.parseInline(summary).trim() || escape(t('fold.name'));
  return `<details${open ? ' open' : ''}><summary>${name}</summary><div class="inside">${parser.parse(tokens)}</div></details>`;
}

const place = /<(?:span|div) class="place">(\d+)<\/(?:span|div)>/g;

const renderer = new SafeRenderer();
const parser = new Parser({
  gfm: true,
  renderer,
  extensions: {
    childTokens: {},
    renderers: {
      formula: (token) => formula(token as unknown as Formula),
      noteRef: (token) => noteRef(token as unknown as NoteRef),
      note: (token) => note(token as unknown as Note),
      fold: (token) => fold(token as unknown as Fold),
    },
  },
});

/** The page's own sanitizer: Mermaid uses the library's shared one, which must keep its usual configuration. */
export const purifier = DOMPurify(window);

// Set once: reading the configuration for every block would cost more than the block.
purifier.setConfig({
  ALLOWED_TAGS: tags,
  ALLOWED_ATTR: attributes,
  ALLOW_DATA_ATTR: false,
  // The sanitizer checks the value of every attribute as an address, except for the attributes in this list.
  ADD_URI_SAFE_ATTR: [
    'align',
    'colspan',
    'data-back',
    'data-info',
    'data-language',
    'data-note',
    'data-name',
    'data-noted',
    'data-path',
    'data-picture',
    'data-remote',
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
  purifier.sanitize(host, { IN_PLACE: true });
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
