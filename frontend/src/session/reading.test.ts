import { beforeEach, expect, test } from 'vitest';
import { keepPlace, placeOf } from './reading';

beforeEach(() => localStorage.clear());

test('a place is kept until the end is followed again', () => {
  expect(placeOf('a')).toBeUndefined();
  keepPlace('a', { seq: 7, into: 0 });
  keepPlace('b', { seq: 8, into: 0 });
  keepPlace('a', { seq: 9, into: 0.25 });
  expect([placeOf('a'), placeOf('b')]).toEqual([
    { seq: 9, look: 'place', into: 0.25 },
    { seq: 8, look: 'place', into: 0 },
  ]);
  keepPlace('a', undefined);
  expect([placeOf('a'), placeOf('b')?.seq]).toEqual([undefined, 8]);
});

test('the newest twenty are kept, and what is none of ours is left out', () => {
  for (let n = 0; n < 25; n++) keepPlace(`s${n}`, { seq: n, into: 0 });
  expect([placeOf('s4'), placeOf('s5')?.seq, placeOf('s24')?.seq]).toEqual([undefined, 5, 24]);
  for (const kept of ['{', '5', '[["a"],["b","x",0],["c",3,0],["d",3]]']) {
    localStorage.setItem('deskhand.reading', kept);
    expect(['a', 'b', 'c', 'd'].map((id) => placeOf(id)?.seq)).toEqual([
      undefined,
      undefined,
      kept.includes('c') ? 3 : undefined,
      undefined,
    ]);
  }
});
