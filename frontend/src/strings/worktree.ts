import { addTexts } from './texts';

// The texts of worktrees, loaded with the start screen or with a session that has a worktree.

export const worktree = {
  'error.worktree.bare': 'The repository is bare: there are no files here',
  'error.worktree.base': 'There is no branch or commit called {base}',
  'error.worktree.branch_moved':
    'The branch {branch} has other commits by now. “git stash apply {ref}” brings back what was kept.',
  'error.worktree.branch_name': 'Git does not accept a branch called {branch}',
  'error.worktree.branch_taken':
    'There is already a branch called {branch}, or one that leaves no room for it',
  'error.worktree.aside':
    'A removal was cut off: its files are in {aside}, and there is something new in {path}. Move the new one away, then restart Deskhand.',
  'error.worktree.filter':
    'git would store something other than what is in {path} (a filter, or line endings): commit it or move it away first',
  'error.worktree.filter_missing':
    '{program} is not installed, and your git settings have git run it for files of the repository ({setting}). Install it, or remove the setting.',
  'error.worktree.busy': 'An agent is working there ({title}): wait until it is done, or stop it',
  'error.worktree.changing': 'Another program is writing in {path}: try again when it is done',
  'error.worktree.disk_full': 'The disk is full. Nothing was changed.',
  'error.worktree.elsewhere': 'Worktrees are made on this computer only',
  'error.worktree.exists': '{path} already exists',
  'error.worktree.failed': 'Git failed: {detail}',
  'error.worktree.gone': '{path} is no longer a worktree',
  'error.worktree.in_use': 'The branch {branch} is checked out elsewhere',
  'error.worktree.locked': 'Another git is at work in {path}, or somebody has locked it',
  'error.worktree.nested':
    '{path} is a git repository of its own, which could not be kept: move it away first',
  'error.worktree.no_commit': 'The repository has no commit yet',
  'error.worktree.no_git': 'Git was not found on this computer',
  'error.worktree.no_repository': '{path} is not in a git repository',
  'error.worktree.none': 'This conversation has no worktree of its own',
  'error.worktree.programs':
    'The repository’s own settings make git run a program, by {setting}. If you know what it does, “git config --global” allows it with the same value.',
  'error.worktree.removed': 'The worktree is already removed',
  'error.worktree.subdirectory': '{path} is in no commit, so a worktree would not have it',
  'error.worktree.submodule': 'The directory belongs to a submodule',
  'error.worktree.submodules':
    'The submodule {path} is checked out there and could not be kept: “git submodule deinit” removes it',
  'error.worktree.there': 'The worktree exists',
  'error.worktree.unfinished': 'A merge, rebase or similar is not finished there: finish it, or abort it',
  'error.worktree.unreadable':
    '{path} cannot be read, so nothing in it could be kept: make it readable, or move it away first',
  'error.worktree.unwritable': '{path} cannot be written',
  'error.worktree.working': 'The worktree is being removed or brought back',
  'setup.menu': 'Set-up and commands',
  'worktree.added': 'new',
  'worktree.back': 'Bring the worktree back',
  'worktree.back.done': 'The worktree is back, as it was',
  'worktree.base': 'Base branch',
  'worktree.base.commit': 'a commit',
  'worktree.base.on': 'checked out',
  'worktree.base.remote': 'as of the last fetch',
  'worktree.base.search': 'Search branches, or a commit',
  'worktree.cancel': 'Cancel',
  'worktree.changed.one': '{n} file that you have not committed stays in the repository.',
  'worktree.changed.other': '{n} files that you have not committed stay in the repository.',
  'worktree.close': 'Close',
  'worktree.deleted': 'deleted',
  'worktree.modified': 'changed',
  'worktree.more.one': 'and {n} more',
  'worktree.more.other': 'and {n} more',
  'worktree.new': 'New worktree',
  'worktree.new.about': 'A second directory of the repository, on a branch of its own.',
  'worktree.own.not': 'No worktree is possible: {why}',
  'worktree.remove': 'Remove worktree…',
  'worktree.remove.alone': 'Delete only the conversation',
  'worktree.remove.both': 'Remove it and delete',
  'worktree.remove.branch': 'The branch {branch} stays.',
  'worktree.remove.branch_goes': 'The branch {branch} has no work on it, and is removed.',
  'worktree.remove.commits.one': 'The branch {branch} stays, with {n} commit of its own.',
  'worktree.remove.commits.other': 'The branch {branch} stays, with {n} commits of its own.',
  'worktree.remove.detached': 'No branch is checked out. The commits that no branch has are kept.',
  'worktree.remove.done': 'Worktree removed',
  'worktree.remove.done_kept.one': 'Worktree removed. {n} file is kept.',
  'worktree.remove.done_kept.other': 'Worktree removed. {n} files are kept.',
  'worktree.remove.goes.one': 'Gone for good: {n} ignored file, {size}',
  'worktree.remove.goes.other': 'Gone for good: {n} ignored files, {size}',
  'worktree.remove.kept.one': 'Kept: {n} uncommitted file',
  'worktree.remove.kept.other': 'Kept: {n} uncommitted files',
  'worktree.remove.left':
    'The worktree is removed, but some of it could not be deleted: it belongs to somebody else, or is in use. What is left is here, and none of it is needed:',
  'worktree.remove.looking': 'Checking what is there…',
  'worktree.remove.missing':
    'The directory is no longer there. What git still has of it is kept: commits, and what was staged.',
  'worktree.remove.nothing': 'Everything in it is committed.',
  'worktree.remove.others': 'Other conversations work there too: {titles}',
  'worktree.remove.run': 'Remove it',
  'worktree.remove.running': 'An agent is working there: {title}. Nothing can be removed until it is done.',
  'worktree.remove.running_now': 'Removing the worktree…',
  'worktree.remove.title': 'Remove the worktree?',
  'worktree.remove.title_delete': 'Delete the conversation and its worktree?',
  'worktree.untracked': 'new',
} as const;

addTexts(worktree);
