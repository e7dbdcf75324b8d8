import { describe, expect, test } from 'vitest';
import type { Request } from '../api/records';
import { request } from '../test/records';
import { told } from './answered';

const options = [
  { id: 'y', name: 'Yes, run it', kind: 'allow_once' },
  { id: 'n', name: 'No', kind: 'reject_once' },
];

test.each<[string, Partial<Request>, string, string]>([
  ['waits', {}, 'Waiting for you', 'warn'],
  ['was withdrawn', { status: 'cancelled' }, 'Withdrawn', 'muted'],
  ['outlived its agent', { status: 'expired' }, 'Expired: the agent ended', 'muted'],
  [
    'was allowed',
    { options, status: 'answered', answer: { optionId: 'y' }, answeredBy: 'browser' },
    'Yes, run it, from a browser',
    'ok',
  ],
  [
    'was approved before the start',
    { kind: 'trust', options, status: 'answered', answer: { optionId: 'y' } },
    'Yes, run it',
    'ok',
  ],
  [
    'was started without',
    { kind: 'trust', options, status: 'rejected', answer: { optionId: 'n' } },
    'No',
    'danger',
  ],
  [
    'asked before a start that did not come',
    { kind: 'trust', status: 'expired' },
    'Expired: the next start asks again',
    'muted',
  ],
  ['was rejected', { options, status: 'rejected', answer: { optionId: 'n' } }, 'No', 'danger'],
  ['form declined', { kind: 'form', status: 'rejected', answer: { action: 'decline' } }, 'Declined', 'muted'],
  [
    'form cancelled',
    { kind: 'form', status: 'rejected', answer: { action: 'cancel' } },
    'Cancelled',
    'muted',
  ],
  ['form accepted', { kind: 'form', status: 'answered', answer: { action: 'accept' } }, 'Answered', 'ok'],
  [
    'address opened',
    { kind: 'url', status: 'answered', answeredBy: 'window', answer: { action: 'accept' } },
    'Agreed to open; the agent waits until you are done there, from the window',
    'ok',
  ],
  [
    'address where all is done',
    { kind: 'url', status: 'answered', answeredBy: 'agent', completedAt: '2026-11-21T14:00:00.000Z' },
    'Finished there',
    'ok',
  ],
  [
    'address declined',
    { kind: 'url', status: 'rejected', answer: { action: 'decline' } },
    'Declined',
    'muted',
  ],
  ['raw dismissed', { kind: 'raw', status: 'rejected', answer: { action: 'cancel' } }, 'Dismissed', 'muted'],
  ['answer of no known shape', { status: 'answered', answer: 'yes' }, 'Answered', 'ok'],
])('%s', (_, part, text, tone) => {
  expect(told(request(part))).toEqual({ text, tone });
});

describe('questions', () => {
  test('tell the labels of what was chosen, and own words as they are', () => {
    const questions = [
      { prompt: 'Colour?', options: [{ id: 'r', label: 'Red' }] },
      { prompt: 'Why?', options: [], allowFreeText: true },
    ];
    const answered = request({
      kind: 'question',
      questions,
      status: 'answered',
      answer: { answers: [['r'], ['Because']] },
    });
    expect(told(answered).text).toBe('Red · Because');
  });
});
