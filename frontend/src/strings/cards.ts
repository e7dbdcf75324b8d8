import { addTexts } from './t';

// The texts of requests that are seldom: an address, and what nobody knows. They come with their cards.

export const cards = {
  'rawcard.about': 'It cannot be answered here. Dismissing it tells the agent so, and it goes on.',
  'rawcard.dismiss': 'Dismiss',
  'url.about':
    'It opens in your browser, outside Deskhand, and only after you agree. {agent} learns that you agreed, and nothing of what you do there.',
  'url.ascii': 'Real name',
  'url.host': 'Leads to {host}',
  'url.open': 'Open in the browser',
  'url.plain': 'The connection is not encrypted: others may read it.',
  'url.punycode':
    'Its name has letters from other scripts, and may imitate another one. Open it only if you expect exactly this name.',
  'url.unicode': 'May be shown as',
} as const;

addTexts(cards);
