import { describe, expect, test } from 'vitest';
import { nameFaults, readServers } from './import';

const files = {
  type: 'local',
  command: 'npx',
  args: ['-y', '@modelcontextprotocol/server-filesystem', '/tmp'],
};
const npx = { command: 'npx', args: ['-y', '@modelcontextprotocol/server-filesystem', '/tmp'] };

/** Returns the servers in a text, by name. */
function found(text: unknown) {
  const read = readServers(typeof text === 'string' ? text : JSON.stringify(text));
  return read.ok ? Object.fromEntries(read.found.map(({ name, entry }) => [name, entry])) : read;
}

function notes(text: unknown) {
  const read = readServers(typeof text === 'string' ? text : JSON.stringify(text));
  return read.ok
    ? read.found.flatMap((one) => one.notes.map(({ code, detail }) => `${code} ${detail}`))
    : read;
}

describe('servers are found in', () => {
  test.each<[string, unknown, Record<string, unknown>]>([
    [
      'Claude Desktop',
      { mcpServers: { files: { ...npx, env: { TOKEN: 'abc', LEVEL: 3 } } }, globalShortcut: '' },
      { files: { ...files, env: { TOKEN: 'abc', LEVEL: '3' } } },
    ],
    [
      'Claude Code, by project',
      {
        numStartups: 3,
        projects: {
          '/a': { mcpServers: { files: { type: 'stdio', ...npx, env: {} } } },
          '/b': { mcpServers: {} },
        },
      },
      { files },
    ],
    [
      'Cursor',
      { mcpServers: { linear: { url: 'https://mcp.linear.app/sse', headers: { 'X-Key': 'k' } } } },
      { linear: { type: 'remote', url: 'https://mcp.linear.app/sse', headers: { 'X-Key': 'k' } } },
    ],
    [
      'Windsurf',
      { mcpServers: { figma: { serverUrl: 'https://mcp.figma.com/mcp' } } },
      { figma: { type: 'remote', url: 'https://mcp.figma.com/mcp' } },
    ],
    [
      'Cline, which says disabled and counts seconds',
      { mcpServers: { files: { ...npx, disabled: true, timeout: 60 } } },
      { files: { ...files, enabled: false, timeoutMs: 60_000 } },
    ],
    [
      'switches of every kind, of which any that is off counts',
      {
        mcpServers: {
          a: { ...npx, isActive: false },
          b: { ...npx, enabled: true, disabled: true },
          c: { ...npx, disabled: 'true' },
          d: { ...npx, disabled: null },
          e: { ...npx, disabled: false },
        },
      },
      {
        a: { ...files, enabled: false },
        b: { ...files, enabled: false },
        c: { ...files, enabled: false },
        d: files,
        e: { ...files, enabled: true },
      },
    ],
    [
      'Claude Code, with servers that are off by a list',
      { disabledMcpServers: ['a'], disabledMcpjsonServers: ['b'], mcpServers: { a: npx, b: npx, c: npx } },
      { a: { ...files, enabled: false }, b: { ...files, enabled: false }, c: files },
    ],
    [
      'Gemini, with lists of what is allowed and what is not',
      { mcp: { allowed: ['a', 'b'], excluded: ['b'] }, mcpServers: { a: npx, b: npx, c: npx } },
      { a: files, b: { ...files, enabled: false }, c: { ...files, enabled: false } },
    ],
    [
      'VS Code, mcp.json',
      {
        inputs: [],
        servers: {
          files: { type: 'stdio', ...npx },
          web: {
            type: 'http',
            url: 'https://x.test/mcp',
            headers: { Authorization: 'Bearer ${env:WEB_TOKEN}' },
          },
          old: { type: 'sse', url: 'https://x.test/sse' },
        },
      },
      {
        files,
        web: { type: 'remote', url: 'https://x.test/mcp', bearerTokenEnvVar: 'WEB_TOKEN', transport: 'http' },
        old: { type: 'remote', url: 'https://x.test/sse', transport: 'sse' },
      },
    ],
    ['VS Code, settings', { 'editor.tabSize': 2, mcp: { servers: { files: npx } } }, { files }],
    ['VS Code, settings with a dotted name', { 'mcp.servers': { files: npx } }, { files }],
    [
      'Zed',
      { theme: 'One', context_servers: { files: { source: 'custom', enabled: true, ...npx, env: {} } } },
      { files: { ...files, enabled: true } },
    ],
    [
      'Zed, as it was',
      {
        context_servers: {
          files: { command: { path: 'npx', args: npx.args, env: { A: '1' } }, settings: {} },
        },
      },
      { files: { ...files, env: { A: '1' } } },
    ],
    [
      'Gemini',
      {
        mcpServers: {
          web: {
            httpUrl: 'https://x.test/mcp',
            headers: { 'X-Token': '$MY_TOKEN' },
            timeout: 5000,
            trust: true,
          },
          sse: { url: 'https://x.test/sse' },
        },
      },
      {
        web: {
          type: 'remote',
          url: 'https://x.test/mcp',
          envHeaders: { 'X-Token': 'MY_TOKEN' },
          transport: 'http',
          timeoutMs: 5000,
        },
        sse: { type: 'remote', url: 'https://x.test/sse' },
      },
    ],
    [
      'opencode',
      {
        $schema: 'https://opencode.ai/config.json',
        mcp: {
          files: { type: 'local', command: ['npx', ...npx.args], enabled: true, environment: { A: '1' } },
          web: {
            type: 'remote',
            url: 'https://x.test/mcp',
            oauth: {},
            headers: { Authorization: 'Bearer {env:WEB_TOKEN}' },
          },
        },
      },
      {
        files: { ...files, env: { A: '1' }, enabled: true },
        web: { type: 'remote', url: 'https://x.test/mcp', bearerTokenEnvVar: 'WEB_TOKEN', oauth: {} },
      },
    ],
    [
      'the protocol’s own list',
      {
        cwd: '/x',
        mcpServers: [
          { name: 'files', ...npx, env: [{ name: 'A', value: '1' }] },
          { type: 'http', name: 'web', url: 'https://x.test/mcp', headers: [{ name: 'X-Key', value: 'k' }] },
        ],
      },
      {
        files: { ...files, env: { A: '1' } },
        web: { type: 'remote', url: 'https://x.test/mcp', headers: { 'X-Key': 'k' }, transport: 'http' },
      },
    ],
    [
      'a table of servers',
      { a: npx, b: { url: 'http://127.0.0.1:3000/mcp' } },
      { a: files, b: { type: 'remote', url: 'http://127.0.0.1:3000/mcp' } },
    ],
    ['one server', npx, { filesystem: files }],
    ['one server with its name', { name: 'mine', ...npx }, { mine: files }],
    [
      'an address alone',
      { url: 'https://mcp.sentry.dev/mcp' },
      { sentry: { type: 'remote', url: 'https://mcp.sentry.dev/mcp' } },
    ],
    [
      'Deskhand itself',
      { type: 'local', command: ['uvx', 'mcp-server-git'], args: ['--verbose'], timeoutMs: 900 },
      { git: { type: 'local', command: 'uvx', args: ['mcp-server-git', '--verbose'], timeoutMs: 900 } },
    ],
  ])('%s', (_, text, wanted) => {
    expect(found(text)).toEqual(wanted);
  });

  test.each<[string, string]>([
    [
      'with comments and trailing commas',
      '// mine\n{ "mcpServers": { /* here */ "files": { "command": "npx", "args": ["-y", "@modelcontextprotocol/server-filesystem", "/tmp",], }, } }',
    ],
    [
      'a piece without its braces',
      '"files": { "command": "npx", "args": ["-y", "@modelcontextprotocol/server-filesystem", "/tmp"] },',
    ],
    [
      'a piece with the name of the table',
      '"mcpServers": { "files": { "command": "npx", "args": ["-y", "@modelcontextprotocol/server-filesystem", "/tmp"] } }',
    ],
    [
      'a block of Markdown',
      '```json\n{ "files": { "command": "npx", "args": ["-y", "@modelcontextprotocol/server-filesystem", "/tmp"] } }\n```',
    ],
  ])('a text %s', (_, text) => {
    expect(found(text)).toEqual({ files });
  });
});

describe('names are suggested from', () => {
  test.each([
    [{ command: 'npx', args: ['-y', '@playwright/mcp@latest'] }, 'playwright'],
    [{ command: 'npx', args: ['-y', '@upstash/context7-mcp@1.0.14'] }, 'context7'],
    [{ command: 'docker', args: ['run', '-i', '--rm', 'ghcr.io/github/github-mcp-server:v1'] }, 'github'],
    [{ command: '/usr/local/bin/mcp-server-time' }, 'time'],
    [{ command: 'C:\\tools\\mine.exe' }, 'mine'],
    [{ command: 'python3', args: ['/srv/weather.py'] }, 'weather'],
    [{ url: 'http://localhost:8080/mcp' }, 'localhost'],
    [{ command: 'npx' }, ''],
  ])('%j', (server, name) => {
    const read = readServers(JSON.stringify(server));
    expect(read.ok && read.found[0]?.name).toBe(name);
  });
});

test('environment variables stay as they are written, and are filled in at a start', () => {
  expect(
    notes({ servers: { a: { command: '${RUN:-npx}', args: ['${env:X}'], cwd: '${workspaceFolder}/x' } } }),
  ).toEqual([]);
});

test('what cannot be taken over is said', () => {
  expect(
    notes({
      mcpServers: { a: { ...npx, env: { KEY: '${input:key}', HOME: '${HOME}' }, alwaysAllow: ['x'] } },
    }),
  ).toEqual(['variable KEY', 'skipped_field alwaysAllow']);
  expect(notes({ servers: { a: { command: '${input:place}/run', cwd: '${input:place}' } } })).toEqual([
    'variable ${input:place}/run',
    'variable cwd',
  ]);
  expect(notes({ context_servers: { ext: { source: 'extension', settings: {} } } })).toEqual(['extension ']);
  expect(notes({ mcpServers: { odd: 'npx', none: {} } })).toEqual(['unreadable ', 'unreadable ']);
});

test('two of one name get two names', () => {
  const text = {
    projects: { a: { mcpServers: { x: npx } }, b: { mcpServers: { x: { url: 'https://x.test' } } } },
  };
  expect(Object.keys(found(text))).toEqual(['x', 'x-2']);
  expect(notes(text)).toEqual(['renamed x']);
});

test('names of a hostile file are names', () => {
  const read = readServers(
    '{"mcpServers": {"__proto__": {"command": "x"}, "constructor": {"command": "y"}}}',
  );
  expect(read.ok && read.found.map(({ name }) => name)).toEqual(['__proto__', 'constructor']);
});

test('what is no JSON has a line, and what has no servers none', () => {
  expect(readServers('{\n "mcpServers": {\n  oops\n }}')).toMatchObject({
    ok: false,
    fault: { code: 'key', line: 3 },
  });
  for (const text of [
    '{}',
    '[]',
    '7',
    '"npx"',
    '{"mcpServers": {}}',
    '{"a": {"b": 1}}',
    '{"mcp": {"timeout": 3}}',
  ])
    expect(readServers(text)).toEqual({ ok: false, fault: undefined });
});

test('names are checked as the server checks them', () => {
  expect(
    nameFaults(['ok', 'with space/and.dots', '', 'a\u0007', 'é'.repeat(129), 'é'.repeat(128), 'ok']),
  ).toEqual([undefined, undefined, 'empty', 'control', 'long', undefined, 'twice']);
});
