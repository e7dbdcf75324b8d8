import { addTexts } from './texts';

// The texts of the set-up of worktrees.

export const setup = {
  'error.setup.broken': 'The project of the repository cannot be read: {detail}',
  'error.setup.command': 'The project has no command for that',
  'error.setup.none': 'This conversation has no worktree of its own',
  'error.setup.not_running': 'No set-up is running',
  'error.setup.nothing': 'Nothing says how to set the worktree up',
  'error.setup.ports': 'No port from {from} to {to} is free',
  'error.setup.running': 'The set-up is already running',
  'error.setup.unapproved': 'The command is not approved yet',
  'setup.again': 'Run again',
  'setup.approve': 'Approve and run',
  'setup.close': 'Close',
  'setup.cut': '… some of the output is left out …',
  'setup.done': 'The worktree is set up',
  'setup.failed': 'The set-up of the worktree has failed: {why}',
  'setup.failed.code': 'The set-up of the worktree has failed: {command} ended with {code}',
  'setup.failed.signal': 'The set-up of the worktree has failed: {command} was ended by {signal}',
  'setup.first': 'Set up',
  'setup.less': 'Hide details',
  'setup.more': 'Show details',
  'setup.no_project': 'No .deskhand/project.json says how to set up worktrees here',
  'setup.nothing': 'There was nothing to set up',
  'setup.now': 'Start now',
  'setup.open': 'Open app',
  'setup.output': 'Output of the set-up',
  'setup.port': 'Its programs find their port, {port}, in DESKHAND_PORT.',
  'setup.release': 'Go on without',
  'setup.run': 'Run app',
  'setup.running': 'Setting up the worktree: {command} ({at} of {of})',
  'setup.running.files': 'Setting up the worktree: copying files',
  'setup.stop': 'Stop',
  'setup.stopped': 'The set-up of the worktree was stopped',
  'setup.test': 'Run tests',
  'setup.title': 'Set-up of the worktree',
  'setup.without': 'The worktree was not set up',
} as const;

addTexts(setup);
