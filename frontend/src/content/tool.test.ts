import { describe, expect, test } from 'vitest';
import { tool } from '../test/records';
import {
  besideCommand,
  bringsHidden,
  command,
  cutsIn,
  exitCode,
  furtherTitle,
  longCommand,
  merge,
  parts,
  placesBelow,
  rawText,
  relative,
  target,
  totals,
} from './tool';

const cwd = '/home/ada/app';

describe('the target of a call', () => {
  test.each([
    [tool({ kind: 'execute', rawInput: { command: 'npm test' } }), 'npm test'],
    [
      tool({ kind: 'execute', rawInput: { command: ['git', 'commit', '-m', 'it’s done'] } }),
      "git commit -m 'it’s done'",
    ],
    [tool({ kind: 'execute', title: '`ls -la`' }), 'ls -la'],
    [tool({ kind: 'read', locations: [{ path: `${cwd}/src/a.ts`, line: 12 }] }), 'src/a.ts:12'],
    [tool({ kind: 'read', locations: [{ path: `${cwd}/src/a.ts`, line: 1 }] }), 'src/a.ts'],
    [tool({ kind: 'edit', locations: [{ path: '/etc/hosts' }] }), '/etc/hosts'],
    [tool({ kind: 'edit', locations: [{ path: `${cwd}/a` }, { path: `${cwd}/b` }] }), 'a +1'],
    [tool({ kind: 'edit', content: [{ type: 'diff', path: `${cwd}/a.ts`, newText: 'x' }] }), 'a.ts'],
    [tool({ kind: 'search', rawInput: { pattern: 'TODO' } }), 'TODO'],
    [tool({ kind: 'fetch', rawInput: { url: 'https://example.com' } }), 'https://example.com'],
    [tool({ kind: 'think', title: 'Consider' }), 'Consider'],
    [tool({ title: '', name: 'mcp__x__y' }), 'mcp__x__y'],
  ])('%#', (call, text) => {
    expect(target(call, cwd).text).toBe(text);
  });
});

test('paths are relative inside the directory, and only there', () => {
  expect(relative('/home/ada/app/x/y', cwd)).toBe('x/y');
  expect(relative('/home/ada/apple/x', cwd)).toBe('/home/ada/apple/x');
  expect(relative(cwd, cwd)).toBe('.');
  expect(relative('C:\\work\\a.ts', 'C:\\work')).toBe('a.ts');
});

test('a command is quoted so that its arguments can be told apart', () => {
  expect(command(tool({ rawInput: { command: ['rm', '-rf', 'my dir', "it's"] } }))).toBe(
    "rm -rf 'my dir' 'it'\\''s'",
  );
  expect(command(tool({ rawInput: 'ls' }))).toBeUndefined();
  expect(command(tool({ rawInput: { command: '' } }))).toBeUndefined();
});

test('beside a command stands what changes what it does, and the directory where it is another', () => {
  const beside = (rawInput: unknown) => besideCommand(tool({ rawInput }), cwd);
  const plain = { description: 'x', timeout: 5, cwd, workdir: cwd, a: null, b: false, c: '', d: [], e: {} };
  expect(beside({ command: 'ls', ...plain })).toBeUndefined();
  expect(beside({ ...plain, cmd: ['ls'], script: 'x', workdir: '/', args: [0] })).toEqual({
    script: 'x',
    workdir: '/',
    args: [0],
  });
  expect(beside({ command: '', script: 'x', cmd: 7 })).toEqual({ cmd: 7 });
  expect(beside({ sql: 'DROP' })).toBeUndefined();
  expect(besideCommand(tool({ rawInput: { command: 'ls', cwd: '/' } }), '')).toEqual({ cwd: '/' });
});

test('content is read by type, and what is unknown is kept raw', () => {
  const call = tool({
    content: [
      { type: 'content', content: { type: 'text', text: 'hi' } },
      { type: 'diff', path: 'a', oldText: null, newText: 'x\n' },
      { type: 'terminal', terminalId: 't1' },
      { type: 'hologram' },
      'nonsense',
    ],
  });
  expect(parts(call).map((part) => part.kind)).toEqual(['content', 'diff', 'terminal', 'raw', 'raw']);
  expect(totals(call)).toEqual({ added: 1, removed: 0 });
  expect(totals(tool())).toBeUndefined();
});

test('a diff of the newer form is read from its patch', () => {
  const [part] = parts(
    tool({
      content: [
        {
          type: 'diff',
          changes: [{ operation: 'modify', path: '/x' }],
          patch: { format: 'git_patch', text: '@@ -1 +1 @@\n-a\n+b\n' },
        },
      ],
    }),
  );
  expect(part?.kind === 'diff' && [part.path, part.diff.added, part.diff.removed]).toEqual(['/x', 1, 1]);
});

test.each([
  ['x\n', 'x\n\u202ey\n', true],
  ['\u202ey\n', 'x\n', false], // removes text
  ['x\r\n', 'y\r\n', false],
])('whether an edit brings in what nobody sees: %j to %j', (oldText, newText, brings) => {
  const call = tool({ kind: 'edit', content: [{ type: 'diff', path: `${cwd}/a.ts`, oldText, newText }] });
  expect(bringsHidden(call)).toBe(brings);
});

test('output and exit code by the names in use', () => {
  expect(rawText('text')).toEqual({ text: 'text', path: '/rawOutput' });
  expect(rawText({ stdout: 'out', stderr: 'err' })).toEqual({ text: 'out\nerr' });
  expect(rawText({ stdout: '', stderr: 'err' })).toEqual({ text: 'err', path: '/rawOutput/stderr' });
  expect(rawText({ formatted_output: 'f' })).toEqual({ text: 'f', path: '/rawOutput/formatted_output' });
  expect(rawText({ other: 1 })).toBeUndefined();
  expect(exitCode(tool({ rawOutput: { exit_code: 2 } }))).toBe(2);
  expect(exitCode(tool({ rawOutput: 'x' }))).toBeUndefined();
});

test('a request adds to what the transcript knows of its call and takes nothing away', () => {
  const known = tool({
    title: 'Edit',
    kind: 'edit',
    content: [{ type: 'diff', path: 'a', newText: 'x' }],
    rawInput: { a: 1 },
  });
  const asked = tool({ title: 'Edit a', kind: 'other' });
  expect(merge(known, asked)).toMatchObject({
    title: 'Edit a',
    kind: 'edit',
    content: known.content,
    rawInput: { a: 1 },
  });
  expect(merge(undefined, asked)).toBe(asked);
  expect(merge(known, undefined)).toBe(known);
});

test('the directory itself is no place worth a line', () => {
  const known = tool({ locations: [{ path: '/work' }, { path: '/work/' }, { path: '/work/a.go', line: 3 }] });
  expect(placesBelow(known, '/work')).toEqual([{ path: '/work/a.go', line: 3 }]);
  expect(placesBelow(tool({}), '/work')).toEqual([]);
});

test('of an edit that is not here as a whole nothing is counted', () => {
  const edit = (newText: string) => tool({ content: [{ type: 'diff', path: '/a', oldText: null, newText }] });
  expect(totals(edit('one\ntwo\n'))).toEqual({ added: 2, removed: 0 });
  expect(totals(edit('one\ntwo\n… 9 more bytes, kept in the journal'))).toBeUndefined();
});

test('what was cut out of a call is told beside the text, of old records as of new ones', () => {
  const cut = { path: '/content/0/content/text', at: 4, bytes: 9, lines: 2 };
  const block = (text: string) => [{ type: 'content', content: { type: 'text', text } }];
  const [now] = parts(tool({ content: block('one\nend'), cut: [cut] }));
  expect(now).toMatchObject({ content: { text: 'one\nend' }, gap: cut });
  const [old] = parts(tool({ content: block('one\n… 9 more bytes, kept in the journal') }));
  expect(old).toMatchObject({ content: { text: 'one' }, gap: { at: 3, bytes: 9, lines: 0 } });
  const [whole] = parts(tool({ content: block('one') }));
  expect(whole).toMatchObject({ gap: undefined });
});

test('a difference that was cut says so beside its lines, and has no line for it', () => {
  const edit = (newText: string, cut: object[] = []) =>
    tool({ kind: 'edit', content: [{ type: 'diff', path: '/a', oldText: '', newText }], cut } as never);
  for (const call of [
    edit('one\n', [{ path: '/content/0/newText', at: 4, bytes: 9, lines: 1 }]),
    edit('one\n… 9 more bytes, kept in the journal'),
  ]) {
    const [part] = parts(call);
    expect(part).toMatchObject({ clipped: true, diff: { lines: [{ kind: 'add', text: 'one' }] } });
    expect(totals(call)).toBeUndefined();
  }
});

test('a command that was cut says so', () => {
  const call = tool({
    kind: 'execute',
    rawInput: { command: 'echo end' },
    cut: [{ path: '/rawInput/command', at: 5, bytes: 9, lines: 0 }],
  });
  expect(command(call)).toBe('echo \n… 9 bytes …\nend');
});

test.each([
  ['Edit src/a.ts', tool({ kind: 'edit', locations: [{ path: `${cwd}/src/a.ts` }] }), 'Edit', undefined],
  [
    'Edit a.ts and b.ts',
    tool({ kind: 'edit', locations: [{ path: `${cwd}/src/a.ts` }, { path: `${cwd}/b.ts` }] }),
    'Edit',
    undefined,
  ],
  [
    `Read ${cwd}/a.ts (1 - 20)`,
    tool({ kind: 'read', locations: [{ path: `${cwd}/a.ts` }] }),
    'Read',
    undefined,
  ],
  ['`npm test`', tool({ kind: 'execute', rawInput: { command: 'npm test' } }), 'Run', undefined],
  ['Run the tests', tool({ kind: 'execute', rawInput: { command: 'npm t' } }), 'Run', 'Run the tests'],
  ['運行測試', tool({ kind: 'execute', rawInput: { command: 'npm t' } }), 'Run', '運行測試'],
  [
    'grep "foo" in docs',
    tool({ kind: 'search', rawInput: { pattern: 'foo' } }),
    'Search',
    'grep "foo" in docs',
  ],
  ['The title is the row', tool({ kind: 'other' }), 'Tool', undefined],
])('the title %s is repeated only where it says more than the row', (title, call, verb, shown) => {
  expect(furtherTitle({ ...call, title }, cwd, verb)).toBe(shown);
});

test('a command of several lines, or a very long one, is more than a row shows', () => {
  const of = (command: string) => longCommand(tool({ kind: 'execute', rawInput: { command } }));
  expect(of('npm test')).toBeUndefined();
  expect(of('a\nb')).toBe('a\nb');
  expect(of('a'.repeat(401))).toHaveLength(401);
});

test('the texts that are held in part are told by their names', () => {
  const cut = [
    { path: '/rawInput/files/a~1b.ts', at: 1, bytes: 2, lines: 0 },
    { path: '/rawOutput', at: 1, bytes: 3, lines: 0 },
    { path: '/rawOutputs', at: 1, bytes: 4, lines: 0 },
  ];
  expect(cutsIn(tool({ cut }), '/rawInput')).toEqual([
    { path: '/rawInput/files/a~1b.ts', name: 'files/a/b.ts', bytes: 2 },
  ]);
  expect(cutsIn(tool({ cut }), '/rawOutput')).toEqual([{ path: '/rawOutput', name: '', bytes: 3 }]);
});
