import { describe, expect, test } from 'vitest';
import {
  argumentsOf,
  faultsOf,
  hasTyped,
  mask,
  masked,
  nameFault,
  pathOf,
  programOf,
  targetOf,
  transportOf,
  typeOf,
  unmasked,
  withCommand,
  withField,
  withType,
  type Entry,
} from './entry';
import { readJson } from './json';

const local: Entry = {
  type: 'local',
  command: 'npx',
  args: ['-y', 'server'],
  env: { KEY: mask },
  vendor: { x: 1 },
};
const remote: Entry = {
  type: 'remote',
  url: 'https://x.test/mcp',
  headers: { 'X-Key': mask },
  oauth: { clientSecret: mask },
};

test('an entry is told in a line', () => {
  expect(
    [local, remote, { url: 'https://x.test', transport: 'sse' }, {}].map((one) => [
      typeOf(one),
      transportOf(one),
    ]),
  ).toEqual([
    ['local', 'stdio'],
    ['remote', 'http'],
    ['remote', 'sse'],
    ['local', 'stdio'],
  ]);
  expect(targetOf(local)).toBe('npx -y server');
  expect(targetOf({ type: 'local', command: ['/opt/my tools/run', '--say'], args: ['two words', ''] })).toBe(
    '"/opt/my tools/run" --say "two words" ""',
  );
  expect(targetOf(remote)).toBe('https://x.test/mcp');
});

test('the form changes its field and nothing else', () => {
  expect(Object.keys(withField(local, 'env', { KEY: 'new' }))).toEqual(Object.keys(local));
  expect(withField(local, 'env', undefined)).toEqual({
    type: 'local',
    command: 'npx',
    args: ['-y', 'server'],
    vendor: { x: 1 },
  });
  const array: Entry = { type: 'local', command: ['npx', '-y'], args: ['server'] };
  expect(withCommand(array, programOf(array), [...argumentsOf(array), 'more'])).toEqual({
    type: 'local',
    command: 'npx',
    args: ['-y', 'server', 'more'],
  });
});

test('another type drops what only the old one has', () => {
  expect(withType({ ...local, enabled: false }, 'remote')).toEqual({
    type: 'remote',
    url: '',
    enabled: false,
    vendor: { x: 1 },
  });
  expect(withType(remote, 'local')).toEqual({ type: 'local', command: '', args: [] });
});

describe('secrets', () => {
  const typed = withField(local, 'env', { KEY: mask, NEW: 'typed' });

  test('are masked in the JSON and come back as they were', () => {
    const shown = masked(typed);
    expect(shown['env']).toEqual({ KEY: mask, NEW: mask });
    expect(unmasked(shown, typed)).toEqual(typed);
    expect(unmasked({ ...shown, env: { NEW: 'other' } }, typed)['env']).toEqual({ NEW: 'other' });
    expect(masked({ oauth: { clientSecret: 's', clientId: 'i' }, headers: { A: '' } })).toEqual({
      oauth: { clientSecret: mask, clientId: 'i' },
      headers: { A: '' },
    });
  });

  test('can be shown when they were typed now', () => {
    expect([local, remote, typed].map(hasTyped)).toEqual([false, false, true]);
  });

  test('stay with their names: a mask under another one stands for nothing', () => {
    expect(faultsOf(local, local)).toEqual([]);
    expect(faultsOf(remote, remote)).toEqual([]);
    expect(faultsOf({ ...local, env: { OTHER: mask } }, local)).toEqual([
      { path: 'env."OTHER"', code: 'masked' },
    ]);
    expect(faultsOf(remote)).toEqual([
      { path: 'headers."X-Key"', code: 'masked' },
      { path: 'oauth.clientSecret', code: 'masked' },
    ]);
  });
});

test('slips are told before the server is asked', () => {
  const paths = (entry: Entry) => faultsOf(entry).map(({ path, code }) => `${path} ${code}`);
  expect(paths({})).toEqual(['type type']);
  expect(paths({ type: 'local', command: ' ' })).toEqual(['command command']);
  expect(paths({ type: 'remote', url: 'ftp://x' })).toEqual(['url url']);
  expect(paths({ type: 'http', url: 'https://x.test', timeoutMs: 1.5, headers: ['a'] })).toEqual([
    'timeoutMs number',
    'headers table',
  ]);
  expect(paths({ type: 'local', command: 'x', env: { A: 1 }, timeoutMs: null })).toEqual(['env."A" text']);
});

test('the path in the server’s words is found in the text', () => {
  const read = readJson('{"args": [1], "env": {"A: B": 1}}');
  const lines = read.ok ? read.lines : new Map<string, number>();
  expect(pathOf('args[0]: a string is wanted', lines)).toBe('args[0]');
  expect(pathOf('env."A: B": a string is wanted', lines)).toBe('env."A: B"');
  expect(pathOf('url: an http or https URL is wanted', lines)).toBeUndefined();
});

test('names are keys, not paths', () => {
  expect(['a/b', '../x', 'two words'].map(nameFault)).toEqual([undefined, undefined, undefined]);
});
