import { languageOf } from './highlight';
import { codeRef } from './lookup';
import { known, type Ref } from './paths';

// Reads which file a block of code is of: in its info string, or in a comment in its first line. Whether such a file exists is not known here.

export interface Named extends Ref {
  /** The block is so clearly named that a file which does not exist may be made of it. */
  readonly sure: boolean;
  /** The block is the whole file, as far as can be told. */
  readonly whole: boolean;
  /** The first line, where it only names the file. */
  readonly label: string | undefined;
}

/** title="src/a.ts", file=src/a.ts. */
const attribute = /(?:^|[\s{,])(?:title|file|filename|path)\s*=\s*(?:"([^"]+)"|'([^']+)'|([^\s,}]+))/i;
/** A comment that names a file and says nothing else. */
const comment =
  /^\s*(?:\/\/+|#+|--+|;+|%+|\/\*+|<!--|\(\*)\s*(?:file(?:name)?:\s*|path:\s*)?(\S+?)\s*(?:\*\/|-->|\*\))?\s*$/i;
/** "12:40:src/a.ts", as some agents quote lines of a file. */
const quoted = /^\d+:\d+:(.+)$/;
const extended = /[^./\\]\.[A-Za-z][A-Za-z\d]{0,11}$|(?:^|[/\\])\.[A-Za-z][\w.-]+$/;

/** Longer blocks name no file. */
const longest = 200_000;

/** Returns the file that a block is of; undefined where it names none. */
export function namedIn(info: string, code: string): Named | undefined {
  if (code.length > longest) return undefined;
  const [from, label] = nameOf(info, code);
  if (!from) return undefined;
  const { ref, sure } = from;
  const language = languageOf(info);
  const whole =
    ref.line === undefined && from.part !== true && language !== 'diff' && !isPart(code, language, ref.path);
  return { ...ref, sure: sure && (extended.test(ref.path) || known.test(ref.path)), whole, label };
}

interface Source {
  ref: Ref;
  sure: boolean;
  /** The name says that the block is some lines of the file. */
  part?: boolean;
}

function nameOf(info: string, code: string): [Source | undefined, string | undefined] {
  const [, double, single, bare] = attribute.exec(info) ?? [];
  const titled = source(double ?? single ?? bare, true);
  if (titled) return [titled, undefined];
  const [first = '', ...more] = info.trim().split(/\s+/);
  for (const word of more) {
    const named = /^[{[(]/.test(word) ? undefined : source(word, true);
    if (named) return [named, undefined];
  }
  const lines = quoted.exec(first)?.[1];
  if (lines !== undefined) return [source(lines, false, true), undefined];
  const behind = /^[A-Za-z][\w+#-]+:(.+)$/.exec(first)?.[1];
  const named = (/^\d/.test(behind ?? '') ? undefined : source(behind, true)) ?? source(first, false);
  if (named) return [named, undefined];
  // A heading of Markdown is no comment.
  const [line = ''] = code.split('\n', 1);
  const said = /^\s*#/.test(line) && languageOf(info) === 'markdown' ? undefined : comment.exec(line)?.[1];
  const inLine = source(said, false);
  return inLine ? [inLine, line] : [undefined, undefined];
}

/** Returns a word as a path. A name without a directory is sure only where nothing else can be meant. */
function source(word: string | undefined, sure: boolean, part = false): Source | undefined {
  const ref = word === undefined || word.startsWith('!') ? undefined : codeRef(word.replace(/^\.\//, ''));
  if (!ref || ref.path.includes(':')) return undefined;
  return { ref, sure: sure || /[/\\]/.test(ref.path), part };
}

const leader = String.raw`(?:\/\/+|#+|--+|;+|%+|\{?\/\*+|<!--|\*)`;
const dots = String.raw`(?:\.{3}|…)`;
/** A comment that begins with an ellipsis, or stands for code in words. */
const leftOut = new RegExp(
  String.raw`^\s*${leader}\s*(?:\[?${dots}|.*${dots}.*\b(?:existing|rest|remain|remaining|unchanged|previous|same|other|omitted|before)\b|.*\b(?:existing|rest|remain|remaining|unchanged|previous|same|other|omitted|before)\b.*${dots}|(?:the )?(?:rest of|existing code|unchanged code|code unchanged)\b)`,
  'im',
);
const bareDots = new RegExp(String.raw`^\s*\[?${dots}\]?,?\s*$`, 'm');

/** Reports whether a block leaves out some of its file, which "// ..." says. Python has a bare "..." of its own. */
function isPart(code: string, language: string | undefined, path: string): boolean {
  const python = language === 'python' || /\.pyi?$/i.test(path);
  return code.trim() === '' || leftOut.test(code) || (!python && bareDots.test(code));
}

/**
 * Returns what the file will hold. The line that names the file goes in only where the file has it already, and the end of the last line is
 * as it was.
 */
export function contentOf(code: string, label: string | undefined, before: string | undefined): string {
  const named = label !== undefined && !before?.startsWith(label);
  const text = named ? code.slice(label.length).replace(/^\n+/, '') : code;
  const ends = before === undefined || before === '' || before.endsWith('\n');
  return ends && text !== '' && !text.endsWith('\n') ? `${text}\n` : text;
}
