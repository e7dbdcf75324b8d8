import { beforeEach, expect, test } from 'vitest';
import { keepPlace, placeOf } from './reading';

beforeEach(() => localStorage.clear());

test('a place is kept until the end is followed again', () => {
  expect(placeOf('a')).toBeUndefined();
  keepPlace('a', 7);
  keepPlace('b', 8);
  keepPlace('a', 9);
  expect([placeOf('a'), placeOf('b')]).toEqual([
    { seq: 9, look: 'place' },
    { seq: 8, look: 'place' },
  ]);
  keepPlace('a', undefined);
  expect([placeOf('a'), placeOf('b')?.seq]).toEqual([undefined, 8]);
});

test('the newest twenty are kept, and what is none of ours is left out', () => {
  for (let n = 0; n < 25; n++) keepPlace(`s${n}`, n);
  expect([placeOf('s4'), placeOf('s5')?.seq, placeOf('s24')?.seq]).toEqual([undefined, 5, 24]);
  for (const kept of ['{', '5', '[["a"],["b","x"],["c",3]]']) {
    localStorage.setItem('deskhand.reading', kept);
    expect([placeOf('a'), placeOf('b'), placeOf('c')?.seq]).toEqual([
      undefined,
      undefined,
      kept.includes('c') ? 3 : undefined,
    ]);
  }
});
