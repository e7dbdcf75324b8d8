import { addTexts } from './texts';

// The texts of the queue above the composer, loaded with the queue.

export const queue = {
  'queue.delete': 'Delete',
  'queue.delete.keys': 'Delete',
  'queue.deleted': 'The queued message was deleted',
  'queue.down': 'Move down',
  'queue.down.keys': 'Alt+Down',
  'queue.edit': 'Edit',
  'queue.edit.away': 'Your change to the queued message was discarded',
  'queue.edit.cancel': 'Cancel',
  'queue.edit.failed': 'Not saved. Your text is still here.',
  'queue.edit.gone': 'The message you were editing was sent or deleted. Your text is in the composer.',
  'queue.edit.label': 'Queued message',
  'queue.edit.save': 'Save',
  'queue.files_only': 'Files only',
  'queue.held.archived': 'Held: the conversation was archived',
  'queue.held.exited': 'Held: the agent ended',
  'queue.held.failed': 'Held: the turn failed',
  'queue.held.interrupted': 'Held: Deskhand or the agent was restarted',
  'queue.held.person': 'Held until you send it',
  'queue.held.refused': 'Held: the agent refused',
  'queue.held.steering': 'On its way to the agent',
  'queue.held.stopped': 'Held: the turn was stopped',
  'queue.interrupt': 'Interrupt and send this',
  'queue.label': 'Queue',
  'queue.release.title': 'Send after the turn',
  'queue.send': 'Send',
  'queue.send.title': 'Send now',
  'queue.up': 'Move up',
  'queue.up.keys': 'Alt+Up',
} as const;

addTexts(queue);
