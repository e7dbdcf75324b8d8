import { addTexts } from './texts';

// The texts of the pages of a long output, loaded with them.

export const output = {
  'output.beside': 'Show in the side panel',
  'output.find': 'Find in the output',
  'output.find.next': 'Next match',
  'output.find.previous': 'Previous match',
  'output.found': '{at} of {all} lines',
  'output.found.none': 'Not found',
  'output.less': 'Show less',
  'output.lines.one': 'Line {from} of {n}',
  'output.lines.other': 'Lines {from} to {to} of {n}',
  'output.next': 'Next page',
  'output.previous': 'Previous page',
  'output.save': 'Save the whole output',
  'output.whole': 'The whole output',
} as const;

addTexts(output);
