import { addTexts } from './texts';

// The texts of the pages of a large approval, loaded with them.

export const pages = {
  'decide.letters': 'Characters {from} to {to} of {all}',
  'decide.lines': 'Lines {from} to {to} of {all}',
  'decide.next': 'Next page',
  'decide.part.command': 'Command',
  'decide.part.diff': 'Change',
  'decide.part.input': 'Input',
  'decide.part.places': 'Paths',
  'decide.part.text': 'Text',
  'decide.part.title': 'Title',
  'decide.previous': 'Previous page',
  'decide.size.lines.one': '{n} line',
  'decide.size.lines.other': '{n} lines',
  'decide.size.one': '{letters} character',
  'decide.size.other': '{letters} characters',
} as const;

addTexts(pages);
