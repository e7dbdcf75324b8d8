// Finds the files that a text names, as people, compilers and stack traces write them: src/a.py:42, a.py(42,7), File "a.py", line 42,
// at f (a.js:1:2), --> a.rs:1:2. Whether such a file exists is not known here.

export interface Link {
  /** The part of the text that becomes a link. */
  start: number;
  end: number;
  path: string;
  line: number | undefined;
}

/** What is behind this in a text is not searched. */
const longest = 200_000;
/** The largest number of links in a text. */
const most = 500;
const longestPath = 1_000;

/** A frame of Python's stack traces, whose path may have spaces. */
const frame = /(?<![\p{L}\p{N}_])File "([^"\n<]{1,1000})", line (\d{1,7})/gu;
/** An address, which is searched as a whole, or a word that may be a path. The colon of a drive belongs to a path. */
const word =
  /(?<![\p{L}\p{N}_])[A-Za-z][A-Za-z\d+.-]*:\/\/[^\s"'`<>]+|(?:(?<![\p{L}\p{N}_])[A-Za-z]:(?=[\\/])|(?![[\]]))[^\s"'`<>|*?(),;:!{}=\p{C}]+/gu;
/** A place behind a path: ":12", ":12:5", ":12-20", "(12,5)", "#L12", "#L12-L20". PHP writes " on line 12". */
const place =
  /^(?::(\d{1,7})(?:[:-]\d{1,7})?|\((\d{1,7})(?:,\s?\d{1,7})?\)|#L(\d{1,7})(?:C\d+)?(?:-L?\d{1,7})?)(?![\p{L}\p{N}_])/u;
const inWords = /^ on line (\d{1,7})(?!\d)/;
/** The address of a file, as engines write it into stack traces. */
const fileUrl = /^file:\/\/(\/[^()]*?)(?::(\d{1,7})(?::\d{1,7})?)?[).,;:]*$/i;

const extension = /[^./\\]\.[A-Za-z][A-Za-z\d]{0,11}$/;
const dotFile = /[/\\]\.[A-Za-z][\w.-]+$/;
/** File names without an extension. */
const known =
  /(?:^|[/\\])(?:Makefile|Dockerfile|Containerfile|Justfile|Rakefile|Gemfile|Procfile|LICENSE|README|CHANGELOG)$/;
/** With a number behind it, such a name is a host with its port. */
const host = /\.(?:com|org|net|edu|gov|local|localhost|internal|example|test)$/i;
/** Options, variables, home directories, names with an "@", and what ends with or consists of separators. */
const noPath = /^[-$~@%#&+]|[/\\]$|\.{3}|(?!^\\\\)[/\\]{2}/;

function isPath(text: string, placed: boolean): boolean {
  if (noPath.test(text)) return false;
  const within = /[/\\]/.test(text);
  // A name alone may be a product ("Node.js"), and words with a slash between them a choice ("and/or").
  if (!within)
    return placed && !text.includes('@') && !host.test(text) && (extension.test(text) || known.test(text));
  return extension.test(text) || known.test(text) || dotFile.test(text);
}

/** Returns a word without what ends a sentence, and without a bracket that was opened before the word. */
function inner(text: string, placed: boolean): string {
  if (placed) return text;
  let to = text.length;
  const opened = () => text.slice(0, to).split('[').length < text.slice(0, to).split(']').length;
  while (/[.…]/.test(text.charAt(to - 1)) || (text.charAt(to - 1) === ']' && opened())) to--;
  return text.slice(0, to);
}

function numberOf(text: string | undefined): number | undefined {
  const line = Number(text ?? 0);
  return line > 0 ? line : undefined;
}

/** Returns the link of an address of a file. */
function linkOfUrl(text: string, start: number): Link | undefined {
  const [, path, line] = fileUrl.exec(text) ?? [];
  const named = path?.replace(/^\/(?=[A-Za-z]:)/, '') ?? '';
  if (!isPath(named, true)) return undefined;
  const end = start + text.replace(/[).,;:]+$/, '').length;
  return { start, end, path: named, line: numberOf(line) };
}

function linkAt(text: string, found: string, at: number): Link | undefined {
  if (found.length > longestPath) return undefined;
  if (/^[A-Za-z][A-Za-z\d+.-]*:\/\//.test(found)) return linkOfUrl(found, at);
  const hash = found.indexOf('#L');
  const whole = hash > 0 ? found.slice(0, hash) : found;
  const behind = text.slice(at + whole.length, at + whole.length + 40);
  const placed = place.exec(behind);
  let start = at;
  let path = inner(whole, placed !== null);
  // The sides of a difference have names of their own: "--- a/main.go".
  if (/^[ab]\//.test(path) && /(?:^|\n)(?:---|\+\+\+) $/.test(text.slice(Math.max(0, start - 5), start))) {
    path = path.slice(2);
    start += 2;
  }
  const line = placed ? (placed[1] ?? placed[2] ?? placed[3]) : inWords.exec(behind)?.[1];
  if (!isPath(path, line !== undefined)) return undefined;
  return { start, end: start + path.length + (placed?.[0].length ?? 0), path, line: numberOf(line) };
}

/** Returns the files that a text names, in order. */
export function linksIn(text: string): Link[] {
  const shown = text.slice(0, longest);
  const links: Link[] = [];
  for (const { 0: whole, 1: path = '', 2: line, index } of shown.matchAll(frame))
    links.push({ start: index, end: index + whole.length, path, line: numberOf(line) });
  const frames = [...links];
  for (const { 0: found, index } of shown.matchAll(word)) {
    if (links.length >= most) break;
    if (!/[./\\]|^[A-Z]/.test(found)) continue; // most words
    const link = linkAt(shown, found, index);
    if (link && !frames.some(({ start, end }) => link.start < end && link.end > start)) links.push(link);
  }
  return links.sort((a, b) => a.start - b.start).slice(0, most);
}
