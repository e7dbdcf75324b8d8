import { addTexts } from './texts';

// The texts of the start of a session: of the start screen, and of a conversation that opens.

export const start = {
  'agent.why': 'Why',
  'startmode.here': 'Begins in',
  'places.where': 'Where',
  'new.add_directory': 'Add another directory…',
  'new.directories': 'Further directories',
  'new.directory.remove': 'Remove {path}',
  'new.agents': 'Agents on this computer',
  'new.agents_file': 'agents.json cannot be read: {detail}',
  'new.demo': 'Try the demo agent',
  'new.directory.placeholder': 'Path of the directory to work in',
  'new.get': 'Install…',
  'new.get.about': 'Install {agent}…',
  'new.first': 'Start your first conversation',
  'new.first.about':
    'Pick an agent and a directory for it to work in. Deskhand keeps everything on this computer; the agent itself may talk to its provider.',
  'new.installing': 'Installing…',
  'new.look_again': 'Look again',
  'new.no_agents': 'No agents are known. Add one to agents.json, then look again.',
  'new.no_directory': 'Choose a directory first.',
  'new.recent': 'Recent directories',
  'new.import': 'Import conversations from {agents}…',
  'new.start': 'Start {agent}',
  'new.start.none': 'Start',
  'new.title': 'New conversation',
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
