import type { Places } from './places';

// Reads the paths in a message: links such as [main.go](src/main.go:12), and inline code such as `src/main.go:12`. The component that shows
// the message provides the directories and the function that opens a file. A path that leads out of the directories stays text.

export interface Ref {
  readonly path: string;
  readonly line: number | undefined;
}

const longest = 4_096;
// Invisible characters and characters that reverse the direction of text.
// eslint-disable-next-line no-control-regex
export const unseen = /[\u0000-\u001f\u007f\u200e\u200f\u202a-\u202e\u2066-\u2069]/;
/** Matches a line number after a path: ":12", ":12:5", ":12-20", "(12,5)"; and as a fragment: "#L12", "#L12-L20", "#L12C5". */
const behind = /(?::L?(\d{1,7})(?:[:-]L?\d{1,7}){0,2}|\((\d{1,7})(?:,\s?\d{1,7})?\))$/;
const fragment = /^L?(\d{1,7})(?:C\d+)?(?:[-,:]L?\d{1,7}(?:C\d+)?)?$/;
/** File names without an extension. */
export const known =
  /(?:^|[/\\])(?:Makefile|Dockerfile|Containerfile|Justfile|Rakefile|Gemfile|Procfile|LICENSE|README|CHANGELOG)$/;

/** Splits a path and its line number. */
export function lined(text: string): Ref {
  const [whole = '', after, between] = behind.exec(text) ?? [];
  const line = Number(after ?? between ?? 0);
  return { path: text.slice(0, text.length - whole.length), line: line > 0 ? line : undefined };
}

function decoded(text: string): string {
  try {
    return decodeURIComponent(text);
  } catch {
    return text; // a name with a percent sign
  }
}

/** Returns the address of a link as a path; undefined for another scheme, another host, or a place in the same text. */
export function linkRef(href: string): Ref | undefined {
  let text = href.trim();
  if (text.length > longest || unseen.test(text)) return undefined;
  const file = /^file:(?:\/\/(?:localhost)?)?(\/(?!\/).*)$/i.exec(text);
  if (file) text = (file[1] ?? '').replace(/^\/(?=[A-Za-z]:)/, '');
  else if (/^[a-z][a-z\d+.-]+:/i.test(text) && !nameWithLine(text)) return undefined;
  if (/^(?:\/\/|\\\\|[#?~])/.test(text)) return undefined;
  const [before = '', after] = text.split(/#(.*)/s);
  const named = after === undefined ? undefined : fragment.exec(after)?.[1];
  const ref = named === undefined ? lined(before) : { path: before, line: Number(named) || undefined };
  const path = decoded(ref.path);
  return path === '' || unseen.test(path) ? undefined : { path, line: ref.line };
}

/** Reports whether an address is a file name with a line, since "main.go:12" looks like a scheme. */
function nameWithLine(text: string): boolean {
  const { path, line } = lined(text.replace(/#.*$/s, ''));
  return line !== undefined && !path.includes(':') && (path.includes('.') || known.test(path));
}

const drive = /^[A-Za-z]:[/\\]/;

/** Returns an absolute path without "." and "..". Windows paths have backslashes. */
function full(path: string, base: string): string {
  const windows = drive.test(base) || base.startsWith('\\\\');
  const separator = windows ? /[/\\]+/ : /\/+/;
  const absolute = windows ? drive.test(path) : path.startsWith('/');
  const kept: string[] = [];
  for (const part of (absolute ? path : `${base}/${path}`).split(separator)) {
    if (part === '..') kept.pop();
    else if (part !== '.' && part !== '') kept.push(part);
  }
  if (!windows) return `/${kept.join('/')}`;
  return (base.startsWith('\\\\') ? '\\\\' : '') + kept.join('\\');
}

function holds(directory: string, path: string): boolean {
  const root = directory.replace(/[/\\]+$/, '');
  const same = drive.test(root) ? path.toLowerCase().startsWith(root.toLowerCase()) : path.startsWith(root);
  return same && (path.length === root.length || /[/\\]/.test(path.charAt(root.length)));
}

/** Returns the possible absolute paths of a reference, all inside the session's directories. */
export function candidates(ref: Ref, { directories, base }: Pick<Places, 'directories' | 'base'>): string[] {
  const bases = base === undefined ? directories : [base];
  const all = bases.map((one) => full(ref.path, one));
  return [...new Set(all)].filter((path) => directories.some((directory) => holds(directory, path)));
}
