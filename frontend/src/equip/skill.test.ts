import { expect, test } from 'vitest';
import { kindOf, skillFaults, sourceLine, sourcesOf, withoutFrontMatter, withSource } from './skill';

const entry = {
  sources: [
    { type: 'github', source: 'anthropics/skills', ref: 'main', subpath: 'document-skills', skills: ['pdf'] },
    { type: 'local', source: '/srv/skills' },
  ],
  vendor: 1,
};

test('a source is told in a line', () => {
  expect(sourcesOf(entry).map(sourceLine)).toEqual([
    'anthropics/skills @ main, document-skills',
    '/srv/skills',
  ]);
  expect(sourcesOf(entry).map(kindOf)).toEqual(['github', 'local']);
  for (const odd of [{}, { sources: 'x' }, { sources: null }]) expect(sourcesOf(odd)).toEqual([]);
  expect(sourcesOf({ sources: [7] })).toEqual([{}]);
});

test('a change of one source leaves the rest', () => {
  const next = withSource(entry, 1, { type: 'git', source: 'https://x.test/r.git' });
  expect(next).toEqual({
    sources: [entry.sources[0], { type: 'git', source: 'https://x.test/r.git' }],
    vendor: 1,
  });
});

test('slips are told with their place', () => {
  const faults = (value: object) => skillFaults({ ...value }).map(({ path, code }) => `${path} ${code}`);
  expect(faults(entry)).toEqual([]);
  expect(faults({})).toEqual(['sources sources']);
  expect(faults({ sources: [] })).toEqual(['sources sources']);
  expect(
    faults({
      sources: [
        7,
        { type: 'svn', source: 'x' },
        { type: 'git', source: ' ' },
        { type: 'git', source: 'x', skills: 'pdf' },
      ],
    }),
  ).toEqual([
    'sources[0] table',
    'sources[1].type kind',
    'sources[2].source source',
    'sources[3].skills list',
  ]);
});

test('the front matter is left out of a preview, and nothing else', () => {
  expect(withoutFrontMatter('---\nname: pdf\n---\n# PDF\n\n---\nmore')).toBe('# PDF\n\n---\nmore');
  expect(withoutFrontMatter('---\r\nname: pdf\r\n---\r\n# PDF')).toBe('# PDF');
  expect(withoutFrontMatter('# PDF\n---\nx\n---\n')).toBe('# PDF\n---\nx\n---\n');
});
