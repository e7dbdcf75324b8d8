import { addTexts } from './texts';

// The texts of what a conversation does now, and of the ways on after a turn.

export const working = {
  'failure.agent': 'The agent failed',
  'failure.auth': 'Not logged in',
  'failure.network': 'The network failed',
  'failure.rate_limit': 'Limit reached',
  'failure.refused': 'The request was refused',
  'failure.code': 'Error code {code}',
  'turn.continue': 'Continue',
  'turn.continue.message': 'Continue.',
  'turn.retry': 'Retry',
  'turn.retry.title': 'Send the message again',
  'turn.log': 'Show log',
  'user.copy': 'Copy the message',
  'working.asking': 'Waiting for your answer',
  'working.cancelling': 'Stopping',
  'working.gone': 'Deskhand is not answering',
  'working.label': 'Now',
  'working.model': 'Waiting for the model',
  'working.thinking': 'Thinking',
  'working.tool.delete': 'Deleting {target}',
  'working.tool.edit': 'Editing {target}',
  'working.tool.execute': 'Running {target}',
  'working.tool.fetch': 'Fetching {target}',
  'working.tool.move': 'Moving {target}',
  'working.tool.read': 'Reading {target}',
  'working.tool.search': 'Searching {target}',
  'working.tool.any': 'Using {target}',
  'working.writing': 'Writing',
};

addTexts(working);
