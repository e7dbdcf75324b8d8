// What a person notes beside changed lines. It stays until it is sent, all of it as one message.

export interface Comment {
  id: string;
  path: string;
  /** Whether the line is one of what was before. */
  side: 'old' | 'new';
  line: number;
  op: ' ' | '+' | '-';
  /** The line itself. */
  code: string;
  text: string;
}

export interface Notes {
  comments: readonly Comment[];
  /** What is being written. */
  draft?: Comment | undefined;
}

const key = 'deskhand.comments';
/** Of so many conversations comments are kept, the latest. */
const most = 50;

type Kept = Record<string, Notes>;

function all(): Kept {
  try {
    const kept: unknown = JSON.parse(localStorage.getItem(key) ?? '{}');
    return typeof kept === 'object' && kept !== null && !Array.isArray(kept) ? (kept as Kept) : {};
  } catch {
    return {};
  }
}

function isComment(value: unknown): value is Comment {
  if (typeof value !== 'object' || value === null) return false;
  const { id, path, code, text, line } = value as Record<string, unknown>;
  return [id, path, code, text].every((one) => typeof one === 'string') && typeof line === 'number';
}

export function keptNotes(session: string): Notes {
  const kept = all()[session];
  const comments: unknown = kept?.comments;
  return {
    comments: Array.isArray(comments) ? comments.filter(isComment) : [],
    draft: isComment(kept?.draft) ? kept.draft : undefined,
  };
}

export function keepNotes(session: string, notes: Notes): void {
  const { [session]: _, ...others } = all();
  // What is written last stands last: the first go when there are too many.
  const left = Object.entries(others).slice(1 - most);
  const something = notes.comments.length > 0 || notes.draft !== undefined;
  try {
    localStorage.setItem(
      key,
      JSON.stringify(Object.fromEntries(something ? [...left, [session, notes]] : left)),
    );
  } catch {
    // There is no room: they stay as long as the page does.
  }
}

/** The longest run of backticks, so that a fence may be longer. */
function fence(text: string): string {
  const longest = Math.max(2, ...[...text.matchAll(/`+/g)].map(([run]) => run.length));
  return '`'.repeat(longest + 1);
}

/** The name of a file as Markdown's code, whatever stands in it. */
function named(path: string): string {
  const shown = path.replace(/[\r\n]+/g, ' ');
  if (!shown.includes('`')) return `\`${shown}\``;
  const marks = fence(shown);
  return `${marks} ${shown} ${marks}`;
}

export interface Words {
  intro: string;
  /** Where a comment belongs, with {path} and {n}. */
  at: (path: string, line: number, removed: boolean) => string;
}

/** All of them as one message, by file and line. */
export function messageOf(comments: readonly Comment[], words: Words): string {
  const sorted = [...comments].sort(
    (a, b) => (a.path < b.path ? -1 : a.path > b.path ? 1 : 0) || a.line - b.line || (a.id < b.id ? -1 : 1),
  );
  const parts = sorted.map(({ path, side, line, op, code, text }) => {
    const marks = fence(code);
    const where = words.at(named(path), line, side === 'old');
    return `${where}\n\n${marks}diff\n${op}${code.replace(/\r$/, '')}\n${marks}\n\n${text.trim()}`;
  });
  return [words.intro, ...parts].join('\n\n');
}
