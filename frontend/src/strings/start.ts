import { addTexts } from './t';

// The texts of the start of a session outside the start screen.

export const start = {
  'new.add_directory': 'Add another directory…',
  'new.directories': 'Further directories',
  'new.directory.remove': 'Remove {path}',
  opening: 'Opening the conversation…',
  'opening.anew':
    'Opening the conversation: it is read anew, once after an update. A long one takes some seconds.',
  'recall.put': 'Put a summary of it into the message',
  'starters.explain': 'Explain what is in this directory',
  'starters.label': 'First messages',
  'starters.review': 'Review what is not committed yet',
  'starters.tests': 'Run {command} and fix what fails',
  'starting.agent': 'Starting {agent}',
  'starting.replaying': 'Reading the conversation',
  'starting.steps': 'Startup steps',
  'step.initialize': 'initialize',
  'step.resolve': 'resolve',
  'step.session': 'session',
  'step.spawn': 'spawn',
  'transcript.empty': '{agent} is ready.',
} as const;

addTexts(start);
