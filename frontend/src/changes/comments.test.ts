import { beforeEach, expect, test } from 'vitest';
import { keepNotes, keptNotes, messageOf, type Comment } from './comments';

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

beforeEach(() => localStorage.clear());

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
  expect(localStorage.getItem('deskhand.comments')).not.toContain('s1');
});

test('of many conversations the latest are kept', () => {
  for (let n = 0; n < 60; n++) keepNotes(`s${n}`, { comments: [comment()] });
  expect(keptNotes('s0').comments).toEqual([]);
  expect(keptNotes('s59').comments).toHaveLength(1);
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
