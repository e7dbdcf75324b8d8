import { addTexts } from './texts';

// The texts of a message that is said differently, in a branch of the conversation.

export const branches = {
  'branch.about':
    'The conversation goes on in a new branch from before this message, and this one stays as it is. {agent} begins anew, with what was said so far as a file.',
  'branch.back.one': 'Put {n} file back to how it was before this message',
  'branch.back.other': 'Put {n} files back to how they were before this message',
  'branch.busy': 'Making the branch…',
  'branch.cancel': 'Cancel',
  'branch.close': 'Close',
  'branch.conflicts.one': '{n} file stays as it is',
  'branch.conflicts.other': '{n} files stay as they are',
  'branch.diff': 'What has changed here since the message, which goes away:',
  'branch.edit': 'Edit from here',
  'branch.files': 'Files that go back',
  'branch.files_stay': 'Files stay as they are: {reason}',
  'branch.looking': 'Checking the files…',
  'branch.message': 'Message',
  'branch.next': 'Next branch',
  'branch.no_files': 'No file has changed since this message.',
  'branch.outcome.removed': 'Will be deleted: it was created after this message',
  'branch.outcome.restored': 'Will be restored',
  'branch.outcome.same': 'Is as it was',
  'branch.of': 'Branch {n} of {all}',
  'branch.previous': 'Previous branch',
  'branch.restored.one': '{n} file is as it was before the message',
  'branch.restored.other': '{n} files are as they were before the message',
  'branch.redo': 'Restore files',
  'branch.redo.about': 'Puts the files back to how they were before you edited the message',
  'branch.redone': 'The files are as they were before the edit.',
  'branch.redone.left.one': '{n} file has changed since and stays as it is.',
  'branch.redone.left.other': '{n} files have changed since and stay as they are.',
  'branch.send': 'Send in a branch',
  'branch.title': 'Edit from here',
  'branch.with': 'With {files}',
};

addTexts(branches);
