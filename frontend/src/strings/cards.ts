import { addTexts } from './t';

// The texts of requests that are no approvals of a tool: they come with their cards.

export const cards = {
  'form.at_least.one': 'at least one',
  'form.at_least.other': 'at least {n}',
  'form.at_most.one': 'at most one',
  'form.at_most.other': 'at most {n}',
  'form.between': '{min} to {max}',
  'form.exactly.one': 'exactly one',
  'form.exactly.other': 'exactly {n}',
  'form.none': 'No answer',
  'form.secret': 'This looks like a secret. What you enter goes to {agent} as plain text.',
  'form.send': 'Send answer',
  'rawcard.about': 'It cannot be answered here. Dismissing it tells the agent so, and it goes on.',
  'rawcard.dismiss': 'Dismiss',
  'reject.back': 'Back',
  'reject.note': 'Reject, and tell {agent} why',
  'reject.note.placeholder': 'What to do instead…',
  'reject.send': 'Reject and send',
  'request.address': 'Address: {title}',
  'request.question': 'Question: {title}',
  'request.raw': 'Unrecognised request: {title}',
  'request.trust': 'Approval before {agent} starts',
  'trust.about': 'Nothing has started yet. You are not asked again about what you approve until it changes.',
  'trust.about.reads':
    'Nothing has started yet. The agent reads this by itself, so it starts with all of it or not at all. You are not asked again about what you approve until it changes.',
  'trust.list': 'What would start',
  'url.about':
    'It opens in your browser, outside Deskhand, and only after you agree. {agent} learns that you agreed, and nothing of what you do there.',
  'url.ascii': 'Real name',
  'url.host': 'Leads to {host}',
  'url.open': 'Open in the browser',
  'url.plain': 'The connection is not encrypted: others may read it.',
  'url.punycode':
    'Its name has letters from other scripts, and may imitate another one. Open it only if you expect exactly this name.',
  'url.unicode': 'May be shown as',
  'leave.back': 'Back',
  'leave.cancel': 'Cancel',
  'leave.cancel.title': 'Aborts what the agent was doing',
  'leave.decline': 'Decline',
  'leave.decline.title': 'The agent goes on without an answer',
  'leave.later': 'Later',
  'leave.later.title': 'Stays in the inbox',
  'leave.question': 'Not answering?',
  'question.closed': 'Only these choices are accepted.',
  'question.missing': 'This needs an answer.',
  'question.own': 'Your own answer',
  'question.own_words': 'Other…',
  'question.write': 'Say the rest as a message',
} as const;

addTexts(cards);
