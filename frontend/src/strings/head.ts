import { addTexts } from './texts';

// The texts of the head of a conversation.

export const head = {
  'head.branch': 'Branch {branch}',
  'head.branch.compare': 'Compare branch {branch} with its base',
  'head.commit': 'Commit…',
  'head.rename': '{title}\nClick to rename',
  'head.stat.name.one': '+{added} −{removed} in {n} file',
  'head.stat.name.other': '+{added} −{removed} in {n} files',
  'head.stat.one': '{n} file changed, {added} lines added, {removed} removed',
  'head.stat.other': '{n} files changed, {added} lines added, {removed} removed',
};

addTexts(head);
