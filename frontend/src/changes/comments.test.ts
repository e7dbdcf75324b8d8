import { afterEach, beforeEach, expect, test, vi } from 'vitest';
import { toasts } from '../state/state';
import type * as Comments from './comments';
import {
  followNotes,
  forgetNotes,
  keepNotes,
  keptNotes,
  messageOf,
  type Comment,
  type Notes,
} from './comments';

const comment = (part: Partial<Comment> = {}): Comment => ({
  id: 'c1',
  path: 'src/a.ts',
  side: 'new',
  line: 3,
  op: '+',
  code: 'const a = 1;',
  text: 'Why 1?',
  ...part,
});

const words = {
  intro: 'Comments:',
  at: (path: string, line: number, removed: boolean) => `${path} ${line}${removed ? ' before' : ''}:`,
};

beforeEach(() => {
  localStorage.clear();
  forgetNotes();
});

let ended: (() => void)[] = [];
afterEach(() => {
  for (const end of ended) end();
  ended = [];
});

/** Loads the module again, as another window with the same storage does. */
async function otherWindow(): Promise<typeof Comments> {
  const again = './comments?other'; // a second instance of the module
  const other = (await import(again)) as typeof Comments;
  other.forgetNotes();
  return other;
}

/** Sends the storage event that a browser sends to other windows. */
function tell(key: string | null = localStorage.key(0)) {
  window.dispatchEvent(new StorageEvent('storage', { key, storageArea: localStorage }));
}

/** Holds notes as the tab does: those that were read, and updates. */
function shown(session: string) {
  const notes = { now: keptNotes(session) };
  ended.push(followNotes(session, (told) => (notes.now = told)));
  return notes;
}

const keysOf = (session: string) =>
  Object.keys(localStorage).filter((key) => key.startsWith(`deskhand.comments/${session}/`));
const idsOf = ({ comments }: Notes) => comments.map((one) => one.id).toSorted();

function noRoom() {
  return vi.spyOn(Storage.prototype, 'setItem').mockImplementation(() => {
    throw new DOMException('full', 'QuotaExceededError');
  });
}

test('comments become one message, in the order of files and lines', () => {
  const message = messageOf(
    [
      comment({
        id: 'c3',
        path: 'src/b.ts',
        line: 1,
        side: 'old',
        op: '-',
        code: 'gone',
        text: 'Bring it back.',
      }),
      comment({ id: 'c2', line: 20, op: ' ', code: '}', text: ' Two\nlines. ' }),
      comment(),
    ],
    words,
  );
  expect(message).toBe(`Comments:

\`src/a.ts\` 3:

\`\`\`diff
+const a = 1;
\`\`\`

Why 1?

\`src/a.ts\` 20:

\`\`\`diff
 }
\`\`\`

Two
lines.

\`src/b.ts\` 1 before:

\`\`\`diff
-gone
\`\`\`

Bring it back.`);
});

test('no line and no name of a file ends the code that it stands in', () => {
  const message = messageOf([comment({ code: '````js', path: 'a`b\nc.ts' })], words);
  expect(message).toContain('`````diff\n+````js\n`````');
  expect(message).toContain('``` a`b c.ts ``` 3:');
});

test('comments and what is being written are kept, by conversation', () => {
  keepNotes('s1', { comments: [comment()], draft: comment({ id: 'd' }) });
  keepNotes('s2', { comments: [comment({ id: 'other' })] });
  expect(keptNotes('s1')).toEqual({ comments: [comment()], draft: comment({ id: 'd' }) });
  expect(keptNotes('s2').comments).toEqual([comment({ id: 'other' })]);
  keepNotes('s1', { comments: [] });
  expect(keptNotes('s1')).toEqual({ comments: [], draft: undefined });
  expect(keysOf('s1')).toEqual([]);
});

test('comments of however many conversations are kept', () => {
  for (let n = 0; n < 60; n++) keepNotes(`s${n}`, { comments: [comment()] });
  forgetNotes(); // the page is reloaded
  expect(keptNotes('s0').comments).toEqual([comment()]);
  expect(keptNotes('s59').comments).toEqual([comment()]);
});

test('two windows write, and neither takes away what the other wrote', async () => {
  const other = await otherWindow();
  const [here, there] = [keptNotes('s1'), other.keptNotes('s1')];
  keepNotes('s1', { ...here, comments: [comment({ id: 'here' })] });
  other.keepNotes('s1', { ...there, comments: [comment({ id: 'there' })] });
  other.keepNotes('s2', { comments: [comment({ id: 'else' })] });
  keepNotes('s1', { comments: [comment({ id: 'here' })], draft: comment({ id: 'draft', text: 'And' }) });
  forgetNotes();
  expect(idsOf(keptNotes('s1'))).toEqual(['here', 'there']);
  expect(keptNotes('s1').draft?.text).toBe('And');
  expect(idsOf(keptNotes('s2'))).toEqual(['else']);
});

test('what another window wrote, changed and sent shows in this one, as long as it is listened to', async () => {
  const other = await otherWindow();
  const notes = shown('s1');
  other.keepNotes('s1', { comments: [comment()], draft: comment({ id: 'd', text: 'half' }) });
  tell();
  expect(idsOf(notes.now)).toEqual(['c1', 'd']); // the other window's draft opens no field here
  expect(notes.now.draft).toBeUndefined();
  other.keepNotes('s1', { comments: [comment({ text: 'Why not 2?' })] });
  tell();
  expect(notes.now.comments).toEqual([comment({ text: 'Why not 2?' })]);
  other.keepNotes('s1', { comments: [] });
  ended.pop()?.();
  tell('deskhand.comments/s1/c1');
  expect(idsOf(notes.now)).toEqual(['c1']);
  expect(shown('s1').now.comments).toEqual([]);
});

test('what one did not touch stays the same object, also when another window wrote beside it', async () => {
  const mine = comment();
  const notes = shown('s1');
  keepNotes('s1', { comments: [mine] });
  const other = await otherWindow();
  other.keepNotes('s1', { comments: [...other.keptNotes('s1').comments, comment({ id: 'c2' })] });
  tell();
  expect(notes.now.comments[0]).toBe(mine);
  expect(idsOf(notes.now)).toEqual(['c1', 'c2']);
});

test('one comment changed in two windows at once becomes two', async () => {
  keepNotes('s1', { comments: [comment()] });
  const other = await otherWindow();
  other.keptNotes('s1');
  other.keepNotes('s1', { comments: [], draft: comment({ text: 'Why 1? Say so there.' }) });
  const notes = shown('s1');
  keepNotes('s1', { comments: [], draft: notes.now.comments[0] });
  other.keepNotes('s1', { comments: [], draft: comment({ text: 'there' }) });
  keepNotes('s1', { comments: [], draft: comment({ text: 'here' }) }); // before the event about the other draft
  expect(notes.now.draft?.text).toBe('here');
  expect(notes.now.comments.map((one) => one.text)).toEqual(['there']);
});

test('what another window went on with is not taken away with what was sent here', async () => {
  keepNotes('s1', { comments: [comment()] });
  const other = await otherWindow();
  other.keptNotes('s1');
  const notes = shown('s1');
  other.keepNotes('s1', { comments: [], draft: comment({ text: 'Why 1, and not 2?' }) });
  keepNotes('s1', { comments: [] }); // sent unchanged
  expect(notes.now.comments.map((one) => one.text)).toEqual(['Why 1, and not 2?']);
});

test('a field that is open and empty stays open, whatever another window does', async () => {
  const other = await otherWindow();
  const notes = shown('s1');
  const draft = comment({ id: 'd', text: '' });
  keepNotes('s1', { comments: [], draft });
  other.keepNotes('s1', { comments: [comment()] });
  tell();
  expect(idsOf(notes.now)).toEqual(['c1']);
  expect(notes.now.draft).toBe(draft);
});

test('that there is no room is told, once, and what was written stays until there is', () => {
  const toast = vi.spyOn(toasts, 'show').mockReturnValue(undefined);
  const full = noRoom();
  const notes = shown('s1');
  keepNotes('s1', { comments: [comment()], draft: comment({ id: 'd', text: 'a' }) });
  keepNotes('s1', { comments: [comment()], draft: comment({ id: 'd', text: 'ab' }) });
  expect(toast.mock.calls).toEqual([[{ text: expect.stringMatching(/no room/) as string, tone: 'danger' }]]);
  tell('deskhand.comments/s1/c1');
  expect(keptNotes('s1')).toEqual({ comments: [comment()], draft: comment({ id: 'd', text: 'ab' }) });
  full.mockRestore();
  keepNotes('s1', keptNotes('s1'));
  forgetNotes();
  expect(keptNotes('s1')).toEqual({ comments: [comment()], draft: comment({ id: 'd', text: 'ab' }) });
  expect(notes.now).toEqual({ comments: [], draft: undefined });
});

test('comments that were kept in one piece are taken over, and only once', () => {
  const one = { s1: { comments: [comment()], draft: comment({ id: 'd' }) }, s2: { comments: [comment()] } };
  localStorage.setItem('deskhand.comments', JSON.stringify(one));
  expect(keptNotes('s1')).toEqual(one.s1);
  keepNotes('s1', { comments: [] });
  forgetNotes();
  expect(keptNotes('s1').comments).toEqual([]);
  expect(keptNotes('s2').comments).toEqual([comment()]);
  expect(localStorage.getItem('deskhand.comments')).toBeNull();
});

test('where the browser forgets everything, what is shown stays', () => {
  const notes = shown('s1');
  keepNotes('s1', { comments: [comment()] });
  localStorage.clear();
  tell(null);
  keepNotes('s1', { comments: [comment()], draft: comment({ id: 'd' }) });
  forgetNotes();
  expect(idsOf(keptNotes('s1'))).toEqual(['c1']);
  expect(notes.now.comments).toEqual([]); // no update came
});

test.each(['', '7', '[]', '{"s1":3}', '{"s1":{"comments":[{"id":1}],"draft":"x"}}', '{'])(
  'what is no longer comments is none: %s',
  (kept) => {
    localStorage.setItem('deskhand.comments', kept);
    expect(keptNotes('s1')).toEqual({ comments: [], draft: undefined });
    keepNotes('s1', { comments: [comment()] });
    expect(keptNotes('s1').comments).toHaveLength(1);
  },
);
