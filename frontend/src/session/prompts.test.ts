import { expect, test } from 'vitest';
import type { EntryPage } from '../api/records';
import { entry } from '../test/records';
import { promptBeside } from './prompts';
import { plainItem } from '../state/transcript';

const said = (seq: number) => entry(seq, { kind: 'user' });
const work = (seq: number) => entry(seq, { kind: 'tool' });
const page = (part: Partial<EntryPage>) => Promise.resolve({ items: [], turns: [], requests: [], ...part });

const client = {
  entries: (_: string, before?: number) =>
    page(before === 50 ? { items: [work(30), work(31)], next: 30 } : { items: [said(2), said(3), work(4)] }),
  entriesAfter: (_: string, after: number) =>
    page(after === 52 ? { items: [work(53), work(60)], newer: 60 } : { items: [said(61), said(62)] }),
};

test('the prompt before or after an entry is found among what is held, and beyond it', async () => {
  const items = [said(50), work(51), work(52)].map(plainItem);
  const beside = (seq: number, step: -1 | 1, next?: number, newer?: number) =>
    promptBeside(client, { id: 's1', items, next, newer }, seq, step);
  expect(await beside(52, -1, 50, 52)).toBe(50);
  expect(await beside(50, -1, 50, 52)).toBe(3);
  expect(await beside(50, 1, 50, 52)).toBe(61);
  expect([await beside(50, -1), await beside(50, 1)]).toEqual([undefined, undefined]);
});
