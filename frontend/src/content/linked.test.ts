import { describe, expect, test, vi } from 'vitest';
import type { Places } from '../markdown/places';
import { filesIn } from './found';
import { linkedRuns } from './linked';

const look = { bold: true, italic: false, line: '' };
const link = (start: number, end: number, file = 'f') => ({ start, end, file, line: undefined });

describe('runs are cut at links', () => {
  const cut = (texts: [string, typeof look?][], ...links: ReturnType<typeof link>[]) =>
    linkedRuns(
      texts.map(([text, look]) => ({ text, ...(look ? { look } : {}) })),
      links,
    ).map(({ text, look, link }) => [text, ...(look ? ['bold'] : []), ...(link ? [link.file] : [])]);

  test('within a run, and over several', () => {
    expect(cut([['see a.go now']])).toEqual([['see a.go now']]);
    expect(cut([['see a.go now']], link(4, 8))).toEqual([['see '], ['a.go', 'f'], [' now']]);
    expect(cut([['a.go', look], [':3'], [' x']], link(0, 6))).toEqual([
      ['a.go', 'bold', 'f'],
      [':3', 'f'],
      [' x'],
    ]);
  });

  test('that follow one another', () => {
    expect(cut([['ab'], ['cd']], link(0, 1, 'f'), link(1, 3, 'g'))).toEqual([
      ['a', 'f'],
      ['b', 'g'],
      ['c', 'g'],
      ['d'],
    ]);
  });
});

test('of the files that an output names those are linked that exist, and nothing outside is looked up', async () => {
  const existing = vi.fn((paths: readonly string[]) =>
    Promise.resolve(new Set(paths.filter((path) => path.endsWith('a.go')))),
  );
  const places: Places = { directories: ['/app'], existing, open: () => undefined };
  const text = 'src/a.go:3 src/b.go:4 /etc/passwd.d/x.conf ../x/a.go:1';
  expect(await filesIn(text, places)).toEqual([{ start: 0, end: 10, file: '/app/src/a.go', line: 3 }]);
  expect(existing.mock.calls).toEqual([[['/app/src/a.go', '/app/src/b.go']]]);
});
