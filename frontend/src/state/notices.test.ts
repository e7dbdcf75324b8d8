import { flushSync } from 'svelte';
import { describe, expect, test, vi } from 'vitest';
import { fakePage } from '../test/page';

const page = fakePage();

describe('what the server cannot write', () => {
  const notice = async (data: object, seq: number) => {
    await page.tell('notice', data, seq);
    await vi.dynamicImportSettled();
    flushSync();
  };

  test('is told while it lasts, and once in words', async () => {
    const saved = page.connection.savedAt;
    for (const seq of [2, 3]) await notice({ code: 'storage.failed', detail: 'disk is full' }, seq);
    expect([...page.conversations.stalls]).toEqual([['s1', 'disk is full']]);
    expect(page.connection.savedAt).toBe(saved);
    expect(page.toasts.list.map(({ text, tone }) => [text, tone])).toEqual([
      ['Nothing can be saved: disk is full. It goes on by itself once the disk takes it.', 'danger'],
    ]);
    await notice({ code: 'storage.works' }, 4);
    expect(page.conversations.stalls.size).toBe(0);
    await notice({ code: 'storage.failed', detail: 'disk is full' }, 5);
    await page.feed({ gen: 'g2', seq: 1, reset: true, events: [] });
    expect(page.conversations.stalls.size).toBe(0);
  });

  test('and what cannot be read any more, is said', async () => {
    await notice({ code: 'journal.damaged', detail: 'frame 3' }, 2);
    expect(page.toasts.list.map(({ text }) => text)[0]).toContain(
      'The journal of “Fix login” is damaged: frame 3.',
    );
  });
});
