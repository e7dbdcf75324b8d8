import { expect, test } from 'vitest';
import { after, type Pen } from './sgr';

const all: Pen = {
  fg: 1,
  bg: 2,
  bold: true,
  dim: true,
  italic: true,
  underline: true,
  inverse: true,
  strike: true,
};

test.each<[string, Pen, Pen]>([
  ['1;31', {}, { bold: true, fg: 1 }],
  ['97;100', {}, { fg: 15, bg: 8 }],
  ['38;5;208', {}, { fg: 208 }],
  ['48;2;10;20;30', {}, { bg: [10, 20, 30] }],
  ['38:5:208', {}, { fg: 208 }],
  ['38:2:10:20:30', {}, { fg: [10, 20, 30] }],
  ['38:2::10:20:30', {}, { fg: [10, 20, 30] }],
  ['4:3', {}, { underline: true }],
  ['4:0', { underline: true }, { underline: false }],
  // The colour of an underline is not shown, and its numbers are not read as other codes.
  ['58;2;1;4;9;32', {}, { fg: 2 }],
  ['58;5;3;32', {}, { fg: 2 }],
  ['', all, {}],
  ['0', all, {}],
  ['31;0', {}, {}],
  ['0;31', all, { fg: 1 }],
  ['22;39', all, { ...all, bold: false, dim: false, fg: undefined }],
  [
    '23;24;27;29;49',
    all,
    { ...all, italic: false, underline: false, inverse: false, strike: false, bg: undefined },
  ],
  // Wrong or unknown codes change nothing.
  ['5;8;73', all, all],
  ['38;5;256', {}, {}],
  ['38;2;1;2', {}, {}],
  ['38;9;31', {}, { fg: 1 }],
  ['38', {}, {}],
])('the codes %j', (codes, before, expected) => {
  expect(after(before, codes)).toEqual(expected);
});
