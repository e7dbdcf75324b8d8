import { expect, test } from 'vitest';
import { answers, ownWords, pick, pickOther, restored } from './reply';

const colour = {
  prompt: 'Colour?',
  options: ['r', 'g', 'b'].map((id) => ({ id, label: id })),
  allowFreeText: true,
};
const several = { ...colour, multiSelect: true };

test('of one choice the last counts', () => {
  expect(pick(colour, pick(colour, { ids: [], other: undefined }, 'r'), 'g').ids).toEqual(['g']);
});

test('of several each is put in and taken out, in the order of the options', () => {
  let picked = { ids: [] as string[], other: undefined as string | undefined };
  picked = pick(several, picked, 'b');
  picked = pick(several, picked, 'r');
  expect(picked.ids).toEqual(['r', 'b']);
  expect(pick(several, picked, 'b').ids).toEqual(['r']);
});

test('own words take the place of one choice, and stand beside several', () => {
  expect(pickOther(colour, { ids: ['r'], other: undefined }, 'mauve')).toEqual({ ids: [], other: 'mauve' });
  expect(pickOther(several, { ids: ['r'], other: undefined }, 'mauve')).toEqual({
    ids: ['r'],
    other: 'mauve',
  });
});

test('own words are kept beside another choice, are not sent with it, and are there again', () => {
  const chosen = pick(colour, { ids: [], other: 'mauve' }, 'g');
  expect(chosen).toEqual({ ids: ['g'], other: undefined, own: 'mauve' });
  expect(answers([chosen])).toEqual({ ok: true, answers: [['g']] });
  expect(pick(colour, chosen, 'r')).toEqual({ ids: ['r'], other: undefined, own: 'mauve' });
  expect(restored([colour], [chosen])).toEqual([chosen]);
  expect(pickOther(colour, chosen, ownWords(chosen))).toEqual({ ids: [], other: 'mauve' });

  const unchecked = pickOther(several, { ids: ['r'], other: 'mauve' }, undefined);
  expect(unchecked).toEqual({ ids: ['r'], other: undefined, own: 'mauve' });
  expect(pick(several, unchecked, 'g').own).toBe('mauve');
  expect(answers([unchecked])).toEqual({ ok: true, answers: [['r']] });

  // A text removed from the field does not return.
  expect(pick(colour, { ids: [], other: '', own: 'mauve' }, 'g')).toEqual({ ids: ['g'], other: undefined });
  expect(restored([{ ...colour, allowFreeText: false }], [chosen])).toEqual([
    { ids: ['g'], other: undefined },
  ]);
});

test('the answers are a list for each question, or the first that is missing', () => {
  expect(
    answers([
      { ids: ['r'], other: undefined },
      { ids: ['g'], other: ' mauve ' },
    ]),
  ).toEqual({
    ok: true,
    answers: [['r'], ['g', 'mauve']],
  });
  expect(
    answers([
      { ids: ['r'], other: undefined },
      { ids: [], other: '  ' },
    ]),
  ).toEqual({ ok: false, missing: 1 });
});

test('what was kept is taken where it fits the questions', () => {
  const empty = { ids: [], other: undefined };
  expect(restored([colour, several], undefined)).toEqual([empty, empty]);
  expect(
    restored([colour, several], [{ ids: ['g', 'b'] }, { ids: ['b', 'gone', 'r'], other: 'mauve' }]),
  ).toEqual([
    { ids: ['g'], other: undefined },
    { ids: ['r', 'b'], other: 'mauve' },
  ]);
  expect(restored([colour], [{ ids: ['g'], other: 'mauve' }])).toEqual([{ ids: [], other: 'mauve' }]);
  expect(restored([{ ...colour, allowFreeText: false }], [{ ids: 7, other: 'x' }])).toEqual([empty]);
  for (const odd of ['x', 7, {}, [null], [[]], [{ ids: [null, {}] }]])
    expect(restored([colour], odd)).toEqual([empty]);
});
