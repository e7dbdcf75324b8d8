import { expect, test } from 'vitest';
import { definitionOf, draftOf, emptyDraft, faultsOf, idOf, looksSecret, masked } from './definition';

const free = { taken: { ids: new Set<string>(), known: new Set<string>() } };
const draft = (part: Partial<ReturnType<typeof emptyDraft>> = {}) => ({
  ...emptyDraft(),
  id: 'mine',
  name: 'Mine',
  command: '/opt/mine',
  ...part,
});

test('an entry comes out as it went in, with values that the server keeps to itself', () => {
  const entry = {
    id: 'mine',
    name: 'Mine',
    command: 'node',
    args: ['/opt/mine.js', '--mode=a b', '  '],
    env: { MINE_KEY: masked, MINE_LEVEL: masked },
    cwd: '/opt',
    override: true,
  };
  expect(definitionOf(draftOf(entry))).toEqual(entry);
});

test('rows that nobody filled in are left out, and blanks around words', () => {
  const made = definitionOf(
    draft({
      name: ' Mine ',
      args: ['acp', '', '--x y'],
      env: [
        { name: '', value: '', secret: false },
        { name: ' LEVEL ', value: ' 3 ', secret: false },
      ],
      cwd: '  ',
    }),
  );
  expect(made).toEqual({
    id: 'mine',
    name: 'Mine',
    command: '/opt/mine',
    args: ['acp', '--x y'],
    env: { LEVEL: ' 3 ' },
  });
});

test('faults stand at their fields', () => {
  expect(faultsOf(draft(), free)).toEqual({});
  expect(faultsOf(emptyDraft(), free)).toEqual({ name: 'needed', id: 'needed', command: 'needed' });
  expect(faultsOf(draft({ id: 'Two words' }), free)).toEqual({ id: 'id' });
  expect(faultsOf(draft(), { taken: { ids: new Set(['mine']), known: new Set() } })).toEqual({ id: 'taken' });
  const known = { taken: { ids: new Set<string>(), known: new Set(['mine']) } };
  expect(faultsOf(draft(), known)).toEqual({ id: 'known' });
  expect(faultsOf(draft({ override: true }), known)).toEqual({});
  expect(faultsOf(draft({ command: '' }), { ...free, commandless: true })).toEqual({});
  expect(faultsOf(draft({ cwd: 'here' }), free)).toEqual({ cwd: 'absolute' });
  for (const cwd of ['/opt', '~/mine', 'C:\\mine', '\\\\host\\mine'])
    expect(faultsOf(draft({ cwd }), free)).toEqual({});
  const row = (name: string, value = 'x') => ({ name, value, secret: false });
  expect(faultsOf(draft({ env: [row('A'), row('A'), row('B=C'), row(''), row('', '')] }), free)).toEqual({
    'env.1': 'twice',
    'env.2': 'env',
    'env.3': 'unnamed',
  });
});

test.each([
  ['My Agent 2', 'my-agent-2'],
  ['  Ünïcode  ', 'unicode'],
  ['日本', ''],
  ['2 fast', 'fast'],
])('the id of %s', (name, id) => {
  expect(idOf(name)).toBe(id);
});

test('which variables are secret by their names', () => {
  for (const name of ['OPENAI_API_KEY', 'GH_TOKEN', 'db_password', 'APIKEY', 'AUTH_HEADER'])
    expect(looksSecret(name), name).toBe(true);
  for (const name of ['MONKEY', 'PATH', 'KEYBOARD', 'LOG_LEVEL', 'AUTHOR'])
    expect(looksSecret(name), name).toBe(false);
});
