import { addTexts } from './t';

// The texts of work trees, which come with the start screen or with a conversation that has one.

export const worktree = {
  'error.worktree.bare': 'The repository is bare: there are no files here',
  'error.worktree.branch_moved':
    'The branch {branch} has other commits by now. “git stash apply {ref}” brings back what was kept.',
  'error.worktree.branch_name': 'Git takes no branch called {branch}',
  'error.worktree.branch_taken': 'There is a branch called {branch}, or one that leaves no room for it',
  'error.worktree.aside':
    'A removal was cut off: what was there is in {aside}, and something new in {path}. Move the new one away, and start Deskhand again.',
  'error.worktree.filter':
    'git would keep something else of {path} than what stands in it (a filter, or line ends): commit it or move it away first',
  'error.worktree.busy': 'An agent is working there ({title}): wait until it is done, or stop it',
  'error.worktree.changing': 'Another program is writing in {path}: try again when it is done',
  'error.worktree.disk_full': 'The disk is full. Nothing was changed.',
  'error.worktree.elsewhere': 'Work trees are made on this computer only',
  'error.worktree.exists': '{path} is there already',
  'error.worktree.failed': 'Git failed: {detail}',
  'error.worktree.gone': '{path} is no work tree any more',
  'error.worktree.in_use': 'The branch {branch} is checked out elsewhere',
  'error.worktree.locked': 'Another git is at work in {path}, or somebody has locked it',
  'error.worktree.nested':
    '{path} is a git repository of its own, which could not be kept: move it away first',
  'error.worktree.no_commit': 'The repository has no commit yet',
  'error.worktree.no_git': 'Git was not found on this computer',
  'error.worktree.no_repository': '{path} is in no git repository',
  'error.worktree.none': 'This conversation has no work tree of its own',
  'error.worktree.programs':
    'The repository itself has git run a program, by {setting}. If you know what it does, “git config --global” allows it with the same value.',
  'error.worktree.removed': 'The work tree is removed already',
  'error.worktree.subdirectory': '{path} is in no commit, so that a work tree would not have it',
  'error.worktree.submodule': 'The directory belongs to a submodule',
  'error.worktree.submodules':
    'The submodule {path} is checked out there and could not be kept: “git submodule deinit” removes it',
  'error.worktree.there': 'The work tree is there',
  'error.worktree.unfinished':
    'A merge, a rebase or the like is not finished there: finish it, or give it up',
  'error.worktree.unreadable':
    '{path} cannot be read, so that nothing in it could be kept: make it readable, or move it away first',
  'error.worktree.unwritable': '{path} cannot be written',
  'error.worktree.working': 'The work tree is being removed or brought back',
  'worktree.added': 'new',
  'worktree.back': 'Bring the work tree back',
  'worktree.back.done': 'The work tree is back, as it was',
  'worktree.branch': 'Branch',
  'worktree.cancel': 'Cancel',
  'worktree.changed.one': '{n} file that you have not committed stays in the repository.',
  'worktree.changed.other': '{n} files that you have not committed stay in the repository.',
  'worktree.close': 'Close',
  'worktree.deleted': 'deleted',
  'worktree.modified': 'changed',
  'worktree.more.one': 'and {n} more',
  'worktree.more.other': 'and {n} more',
  'worktree.own': 'In a work tree of its own',
  'worktree.own.about': 'A second directory of the repository, on a new branch: {path}',
  'worktree.own.not': 'There can be no work tree: {why}',
  'worktree.remove': 'Remove work tree…',
  'worktree.remove.alone': 'Delete the conversation alone',
  'worktree.remove.both': 'Remove it and delete',
  'worktree.remove.branch': 'The branch {branch} stays.',
  'worktree.remove.branch_goes': 'The branch {branch} has no work on it, and goes.',
  'worktree.remove.commits.one': 'The branch {branch} stays, with {n} commit of its own.',
  'worktree.remove.commits.other': 'The branch {branch} stays, with {n} commits of its own.',
  'worktree.remove.detached': 'No branch is checked out. The commits that no branch has are kept.',
  'worktree.remove.done': 'Work tree removed',
  'worktree.remove.done_kept.one': 'Work tree removed. {n} file is kept.',
  'worktree.remove.done_kept.other': 'Work tree removed. {n} files are kept.',
  'worktree.remove.goes.one': 'Gone for good: {n} file that the repository ignores, {size}',
  'worktree.remove.goes.other': 'Gone for good: {n} files that the repository ignores, {size}',
  'worktree.remove.kept.one': 'Kept: {n} file that nobody has committed',
  'worktree.remove.kept.other': 'Kept: {n} files that nobody has committed',
  'worktree.remove.left':
    'The work tree is removed, but not all of it could be deleted: it belongs to somebody else, or is in use. What is left lies here, and nothing in it is needed:',
  'worktree.remove.looking': 'Looking at what is there…',
  'worktree.remove.missing':
    'The directory is not there any more. What git still has of it is kept: commits, and what was staged.',
  'worktree.remove.nothing': 'Everything in it is committed.',
  'worktree.remove.others': 'Other conversations work there, too: {titles}',
  'worktree.remove.run': 'Remove it',
  'worktree.remove.running': 'An agent is working there: {title}. Nothing can be removed until it is done.',
  'worktree.remove.running_now': 'Removing the work tree…',
  'worktree.remove.title': 'Remove the work tree?',
  'worktree.remove.title_delete': 'Delete the conversation, and its work tree?',
  'worktree.untracked': 'new',
} as const;

addTexts(worktree);
