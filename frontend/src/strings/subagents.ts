import { addTexts } from './texts';

// The texts of the sessions of subagents.

export const subagents = {
  'subagent.of': 'Subagent of {title}',
  'subagent.about': '{agent} has begun this subagent for a part of its work, and gives it its tasks.',
  'subagent.cwd': 'It works in {path}.',
  'subagent.unstoppable': 'It stops when the whole conversation is stopped.',
  'subagent.parent': 'Go to the conversation',
  'subagent.stop': 'Stop',
  'subagent.stop.of': 'Stop {title}',
  'subagent.stopping': 'Stopping…',
  'subagent.open': 'Open',
  'subagent.open.of': 'Open {title}',
  'subagent.named': 'Subagent {title}',
  'subagent.untitled': 'Subagent',
  'subagent.message.to': 'To {title}',
  'subagent.message.from': 'From {title}',
  'subagent.message.to_other': 'To another session',
  'subagent.message.from_other': 'From another session',
};

addTexts(subagents);
