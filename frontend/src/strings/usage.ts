import { addTexts } from './texts';

// The texts of what turns took.

export const usage = {
  'error.usage.day': '“{value}” is no day.',
  'error.usage.span':
    '{from} to {to} cannot be summed up: the days are too far apart, or in the wrong order.',
  'error.usage.zone': 'Deskhand does not know the time zone {value}.',
  'usage.account.none': 'Account not told',
  'usage.bars': 'Tokens a day',
  'usage.by': 'Sum up by',
  'usage.by.account': 'Account',
  'usage.by.agent': 'Agent',
  'usage.by.model': 'Model',
  'usage.by.session': 'Conversation',
  'usage.cached': 'Cached',
  'usage.cost': 'Cost',
  'usage.day': 'Day',
  'usage.deleted.one': '{n} deleted conversation',
  'usage.deleted.other': '{n} deleted conversations',
  'usage.empty':
    'Nothing was used in these days. What your agents take is counted here from their first turn on.',
  'usage.export': 'Export CSV',
  'usage.input': 'Input',
  'usage.model.none': 'Model not told',
  'usage.nothing': 'not told',
  'usage.numbers': 'Show the numbers',
  'usage.of': '{name}: {n}',
  'usage.output': 'Output',
  'usage.pending.one': '{n} older conversation is still being counted.',
  'usage.pending.other': '{n} older conversations are still being counted.',
  'usage.range': 'Days',
  'usage.range.7': '7 days',
  'usage.range.30': '30 days',
  'usage.range.90': '90 days',
  'usage.range.365': 'Year',
  'usage.silent': '{names} told no tokens: their turns count, and what they took is not known.',
  'usage.time': 'Time',
  'usage.title': 'Usage',
  'usage.tokens': 'Tokens',
  'usage.totals': 'In all',
  'usage.turns': 'Turns',
  'usage.year': 'The last year',
};

addTexts(usage);
