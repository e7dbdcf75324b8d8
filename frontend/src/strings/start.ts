import { addTexts } from './texts';

// The texts of the start of a session: of the start screen, and of a conversation that opens.

export const start = {
  'startmode.here': 'Begins in',
  'new.agent': 'Agent',
  'new.browse': 'Choose a directory…',
  'new.first': 'Start your first conversation',
  'new.login': 'Log in',
  'new.more_agents': 'More agents…',
  'new.more_agents.about': 'Install an agent, or look at why one is not found',
  'new.needs_login': '{agent} needs a login.',
  'new.sample': 'Sample project',
  'new.sample.about': 'A small shop with a bug, made for trying things out',
  'new.where': 'Where it begins',
  'places.where': 'Where',
  'new.add_directory': 'Add another directory…',
  'new.directories': 'Further directories',
  'new.directory.remove': 'Remove {path}',
  'new.agents_file': 'agents.json cannot be read: {detail}',
  'new.import': 'Import conversations from {agents}…',
  'new.title': 'New conversation',
  opening: 'Opening the conversation…',
  'opening.anew':
    'Opening the conversation: it is read anew, once after an update. A long one takes some seconds.',
  'recall.put': 'Put a summary of it into the message',
  'starters.demo.fix': 'Fix the failing test',
  'starters.demo.picture': 'Show the prices as a picture',
  'starters.demo.plan': 'Plan how to print a receipt',
  'starters.demo.question': 'Ask me which currency to use',
  'starters.explain': 'Explain what is in this directory',
  'starters.label': 'First messages',
  'starters.review': 'Review what is not committed yet',
  'starters.tests': 'Run {command} and fix what fails',
  'starting.agent': 'Starting {agent}',
  'starting.setup': '{agent} starts when the worktree is set up',
  'starting.replaying': 'Reading the conversation',
  'starting.steps': 'Startup steps',
  'step.initialize': 'initialize',
  'step.resolve': 'resolve',
  'step.session': 'session',
  'step.spawn': 'spawn',
  'transcript.empty': '{agent} is ready.',
} as const;

addTexts(start);
