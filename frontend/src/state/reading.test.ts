import { beforeEach, expect, test } from 'vitest';
import { keepReadAt, readAt } from './reading';

beforeEach(() => localStorage.clear());

test('a place is kept until the end is followed again', () => {
  expect(readAt('a')).toBeUndefined();
  keepReadAt('a', { seq: 7, into: 0 });
  keepReadAt('b', { seq: 8, into: 0 });
  keepReadAt('a', { seq: 9, into: 0.25 });
  expect([readAt('a'), readAt('b')]).toEqual([
    { seq: 9, look: 'place', into: 0.25 },
    { seq: 8, look: 'place', into: 0 },
  ]);
  keepReadAt('a', undefined);
  expect([readAt('a'), readAt('b')?.seq]).toEqual([undefined, 8]);
});

test('the newest twenty are kept, and what is none of ours is left out', () => {
  for (let n = 0; n < 25; n++) keepReadAt(`s${n}`, { seq: n, into: 0 });
  expect([readAt('s4'), readAt('s5')?.seq, readAt('s24')?.seq]).toEqual([undefined, 5, 24]);
  for (const kept of ['{', '5', '[["a"],["b","x",0],["c",3,0],["d",3]]']) {
    localStorage.setItem('deskhand.reading', kept);
    expect(['a', 'b', 'c', 'd'].map((id) => readAt(id)?.seq)).toEqual([
      undefined,
      undefined,
      kept.includes('c') ? 3 : undefined,
      undefined,
    ]);
  }
});
