import { addTexts } from './texts';

// The texts of runs of work: what an agent did between two texts. The parts are joined, and the first begins with a capital letter.

export const work = {
  'work.any.one': 'used {n} tool',
  'work.any.other': 'used {n} tools',
  'work.delete.more': 'deleted {n}',
  'work.delete.one': 'deleted {n} file',
  'work.delete.other': 'deleted {n} files',
  'work.earlier.one': '{n} earlier step',
  'work.earlier.other': '{n} earlier steps',
  'work.edit.more': 'edited {n}',
  'work.edit.one': 'edited {n} file',
  'work.edit.other': 'edited {n} files',
  'work.execute.one': 'ran {n} command',
  'work.execute.other': 'ran {n} commands',
  'work.failed': '{n} failed',
  'work.fetch.one': 'fetched {n} page',
  'work.fetch.other': 'fetched {n} pages',
  'work.move.more': 'moved {n}',
  'work.move.one': 'moved {n} file',
  'work.move.other': 'moved {n} files',
  'work.read.one': 'read {n} file',
  'work.read.other': 'read {n} files',
  'work.search.more': 'searched {n}',
  'work.search.one': 'searched {n} time',
  'work.search.other': 'searched {n} times',
  'work.subagent.one': 'ran {n} subagent',
  'work.subagent.other': 'ran {n} subagents',
  'work.steps.one': '{n} step',
  'work.steps.other': '{n} steps',
} as const;

addTexts(work);
