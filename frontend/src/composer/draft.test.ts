import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest';
import { ApiError } from '../api/errors';
import { Draft, draftOf as made, leaveDraft, type Save } from './draft';

beforeEach(() => vi.useFakeTimers());
afterEach(() => vi.useRealTimers());

const draftOf = (session: string, text: string, save: Save) => made(session, text, save, () => 'then');

function make(text = '') {
  const save = vi.fn<Save>(() => Promise.resolve());
  return { draft: new Draft(text, save), save };
}

test('what is typed is saved every half second, also while there is no pause', async () => {
  const { draft, save } = make();
  for (let n = 1; n <= 20; n++) {
    draft.type('k'.repeat(n));
    await vi.advanceTimersByTimeAsync(100);
  }
  expect(save.mock.calls.map(([text]) => text.length)).toEqual([5, 10, 15, 20]);
  await vi.advanceTimersByTimeAsync(1_000);
  expect(save).toHaveBeenCalledTimes(4);
});

test('typing something away again saves nothing', async () => {
  const { draft, save } = make('a');
  draft.type('ab');
  draft.type('a');
  await vi.advanceTimersByTimeAsync(1_000);
  expect(save).not.toHaveBeenCalled();
});

test('saves go out one after the other', async () => {
  const order: string[] = [];
  let release!: () => void;
  const first = new Promise<void>((done) => (release = done));
  const draft = new Draft('', (text) => {
    order.push(text);
    return order.length === 1 ? first : Promise.resolve();
  });
  draft.type('one');
  void draft.flush();
  await vi.advanceTimersByTimeAsync(0);
  draft.type('two');
  void draft.flush();
  await vi.advanceTimersByTimeAsync(0);
  expect(order).toEqual(['one']);
  release();
  await vi.advanceTimersByTimeAsync(0);
  expect(order).toEqual(['one', 'two']);
});

describe('what the server tells', () => {
  test('of another window is taken while nothing here would be lost', () => {
    const { draft } = make('a');
    expect(draft.told('from elsewhere')).toBe(true);
    expect(draft.text).toBe('from elsewhere');
  });

  test('never replaces what is being typed', () => {
    const { draft } = make('a');
    draft.type('ab');
    expect(draft.told('from elsewhere')).toBe(false);
    expect(draft.text).toBe('ab');
  });

  test('late, of an earlier save of ours, changes nothing', async () => {
    const { draft } = make();
    draft.type('one');
    await draft.flush();
    draft.type('one two');
    await draft.flush();
    expect(draft.told('one')).toBe(false);
    expect(draft.text).toBe('one two');
    expect(draft.told('one two')).toBe(false);
    // From then on the draft accepts the texts of other windows again.
    expect(draft.told('else')).toBe(true);
  });

  test('several times the same is no news', async () => {
    const { draft } = make();
    draft.type('one');
    await draft.flush();
    expect([draft.told('one'), draft.told('one')]).toEqual([false, false]);
    expect(draft.text).toBe('one');
  });
});

test('while it is being sent nothing is saved', async () => {
  const { draft, save } = make();
  draft.type('message');
  draft.begin();
  await vi.advanceTimersByTimeAsync(1_000);
  expect(save).not.toHaveBeenCalled();
});

test('what is being sent is not saved when it is left, and is the same draft for who comes back', async () => {
  const { save } = make();
  const draft = draftOf('s3', '', save);
  draft.type('message');
  draft.begin();
  await leaveDraft('s3', draft);
  expect(save).not.toHaveBeenCalled();
  expect(draftOf('s3', '', save)).toBe(draft);
  draft.type('message, and more');
  await vi.advanceTimersByTimeAsync(1_000);
  expect(save).toHaveBeenCalledExactlyOnceWith('message, and more', false);
});

describe('a message that has arrived', () => {
  const out = (saved: string) => ('message'.startsWith(saved) ? '' : undefined);
  async function sent(saved = 'message') {
    const { draft, save } = make();
    const show = vi.fn<Draft['show']>();
    draft.show = show;
    draft.type(saved);
    if (saved !== '') await draft.flush();
    draft.told(saved);
    draft.type('message');
    save.mockClear();
    draft.begin();
    return { draft, save, show };
  }

  test('is not taken out of the draft once more', async () => {
    for (const saved of ['message', 'mess', '']) {
      const { draft, save, show } = await sent(saved);
      draft.arrived('', out);
      draft.told('');
      await vi.advanceTimersByTimeAsync(5_000);
      expect([draft.text, show.mock.lastCall, save.mock.calls]).toEqual(['', [''], []]);
    }
  });

  test('and is given back at once is there again, whenever that is heard of', async () => {
    for (const saved of ['message', 'mess', ''])
      for (const before of [0, 1, 2]) {
        const { draft, save, show } = await sent(saved);
        const told = ['', 'message'];
        for (const text of told.splice(0, before)) expect(draft.told(text)).toBe(false);
        draft.arrived('', out);
        for (const text of told) if (draft.told(text)) draft.show(draft.text);
        await vi.advanceTimersByTimeAsync(5_000);
        expect([draft.text, show.mock.lastCall, save.mock.calls]).toEqual(['message', ['message'], []]);
      }
  });

  test('and was given back before it was heard that it had been taken out is there again', async () => {
    const { draft, save, show } = await sent();
    draft.arrived('', out);
    expect(draft.told('message')).toBe(false); // the text may be older than the message
    await vi.advanceTimersByTimeAsync(1_000);
    expect([draft.text, show.mock.lastCall, save.mock.calls]).toEqual(['message', ['message'], []]);
  });

  test('and was given back to what was typed since stands before it', async () => {
    const { draft, save, show } = await sent();
    draft.arrived('', out);
    draft.told('message');
    draft.type('more');
    await vi.advanceTimersByTimeAsync(900);
    expect(save).not.toHaveBeenCalled();
    await vi.advanceTimersByTimeAsync(1_000);
    expect(show.mock.lastCall).toEqual(['message\n\nmore']);
    expect(save.mock.calls).toEqual([['message\n\nmore', false]]);
  });

  test('and was given back after something was typed stands before that', async () => {
    const { draft, save } = await sent();
    draft.arrived('', out);
    draft.type('more');
    draft.told('');
    await vi.advanceTimersByTimeAsync(200);
    expect(draft.told('message')).toBe(true);
    await vi.advanceTimersByTimeAsync(500);
    expect([draft.text, save.mock.calls]).toEqual(['message\n\nmore', [['message\n\nmore', false]]]);
  });

  test('leaves what was typed since, which is saved though nothing is told', async () => {
    const { draft, save } = await sent();
    draft.type('message more');
    draft.arrived('more', out);
    await vi.advanceTimersByTimeAsync(1_500);
    expect(save.mock.calls).toEqual([['more', false]]);
  });

  test('is not shown again by what is told of before', async () => {
    const { draft, show } = await sent();
    draft.arrived('', out);
    draft.told('message');
    draft.told('');
    await vi.advanceTimersByTimeAsync(5_000);
    expect([draft.text, show.mock.calls]).toEqual(['', [['']]]);
    expect(draft.told('from elsewhere')).toBe(true);
  });

  test('leaves what was typed since, which is saved', async () => {
    const { draft, save } = await sent();
    draft.type('message more');
    draft.arrived('more', out);
    draft.told('');
    await vi.advanceTimersByTimeAsync(500);
    expect([draft.text, save.mock.calls]).toEqual(['more', [['more', false]]]);
  });

  test('is taken out where it is not known what the server had', async () => {
    const saving = await sent('mess');
    void saving.draft.flush(true); // at the same time as the message
    saving.save.mockClear();
    const longer = await sent('message, and more');
    for (const { draft, save } of [saving, longer]) {
      draft.arrived('', out);
      await vi.advanceTimersByTimeAsync(0);
      expect(save).toHaveBeenCalledExactlyOnceWith('', false);
    }
  });

  test('or not is not changed by the next one', async () => {
    const { draft, save } = await sent();
    draft.arrived('', out);
    draft.type('message');
    draft.begin();
    await vi.advanceTimersByTimeAsync(1_000);
    draft.kept();
    expect(draft.told('')).toBe(false); // the text of the first save
    await vi.advanceTimersByTimeAsync(500);
    expect([draft.text, save.mock.calls]).toEqual(['message', [['message', false]]]);
  });
});

test('a save that failed is tried again with the next change', async () => {
  const save = vi.fn<Save>().mockRejectedValueOnce(new Error('down')).mockResolvedValue();
  const draft = new Draft('', save);
  draft.type('text');
  await draft.flush();
  expect(draft.dirty).toBe(true);
  await draft.flush(true);
  expect(save.mock.calls).toEqual([
    ['text', false],
    ['text', true],
  ]);
  expect(draft.dirty).toBe(false);
});

test('a save that failed is tried again by itself, less and less often, and tells why until one works', async () => {
  const save = vi.fn<Save>().mockRejectedValue(new ApiError('storage.failed', {}, 503));
  const draft = new Draft('', save);
  const failed = vi.fn<Draft['failed']>();
  draft.failed = failed;
  draft.type('text');
  await vi.advanceTimersByTimeAsync(500 + 500 + 1_000);
  expect(save).toHaveBeenCalledTimes(3);
  await vi.advanceTimersByTimeAsync(60_000);
  expect(save.mock.calls.length).toBeLessThan(12);
  expect(failed).toHaveBeenLastCalledWith(expect.objectContaining({ code: 'storage.failed' }));
  save.mockResolvedValue();
  await vi.advanceTimersByTimeAsync(10_000);
  expect(draft.dirty).toBe(false);
  expect(failed.mock.lastCall).toEqual([]);
  save.mockClear();
  await vi.advanceTimersByTimeAsync(60_000);
  expect(save).not.toHaveBeenCalled();
});

test('what is typed after saves have failed is saved as soon as ever', async () => {
  const save = vi.fn<Save>().mockRejectedValue(new Error('down'));
  const draft = new Draft('', save);
  draft.type('text');
  await vi.advanceTimersByTimeAsync(60_000); // by now ten seconds lie between two tries
  save.mockReset().mockResolvedValue();
  draft.type('text, and more');
  await vi.advanceTimersByTimeAsync(500);
  expect(save).toHaveBeenCalledExactlyOnceWith('text, and more', false);
  await vi.advanceTimersByTimeAsync(60_000);
  expect(save).toHaveBeenCalledTimes(1);
});

test('what is refused as it is waits for the next change', async () => {
  const save = vi.fn<Save>().mockRejectedValue(new ApiError('request.invalid', {}, 422));
  const draft = new Draft('', save);
  const failed = vi.fn<Draft['failed']>();
  draft.failed = failed;
  draft.type('too long');
  await vi.advanceTimersByTimeAsync(60_000);
  expect([save.mock.calls.length, failed.mock.calls.length]).toEqual([1, 1]);
  draft.type('');
  expect(failed.mock.lastCall).toEqual([]);
});

test('what is told while a save waits for the one before it is older than both', async () => {
  const ends: (() => void)[] = [];
  const draft = new Draft('', () => new Promise<void>((done) => ends.push(done)));
  draft.type('one');
  void draft.flush();
  await Promise.resolve();
  draft.type('two');
  const all = draft.flush();
  expect(draft.told('one')).toBe(false); // the echo comes before the answer
  expect(draft.told('one')).toBe(false); // a second echo, sent because another field of the session changed
  expect(draft.text).toBe('two');
  ends[0]?.();
  await vi.advanceTimersByTimeAsync(0);
  ends[1]?.();
  await all;
  expect(draft.told('two')).toBe(false);
  expect(draft.told('elsewhere')).toBe(true);
});

describe('a draft whose composer is gone', () => {
  const failing = () => vi.fn<Save>().mockRejectedValue(new Error('full'));

  test('is there again with what could not be saved, and goes on saving', async () => {
    const save = failing();
    const draft = draftOf('s1', '', save);
    draft.type('text');
    await leaveDraft('s1', draft);
    expect(save).toHaveBeenCalledExactlyOnceWith('text', false);
    expect(draftOf('s2', '', save).text).toBe('');
    const again = draftOf('s1', '', save);
    expect(again.text).toBe('text');
    save.mockResolvedValue();
    await vi.advanceTimersByTimeAsync(1_000);
    expect([again.dirty, save.mock.calls.length]).toEqual([false, 2]);
    await leaveDraft('s1', again);
    expect(draftOf('s1', 'told', save).text).toBe('told');
  });

  test('is not replaced by what another window has written meanwhile', async () => {
    const save = failing();
    const draft = draftOf('s1', 'a', save);
    draft.type('ab');
    await leaveDraft('s1', draft);
    const again = draftOf('s1', 'from elsewhere', save);
    expect([again.told('from elsewhere'), again.text]).toEqual([false, 'ab']);
    save.mockResolvedValue();
    await again.flush();
    expect(save).toHaveBeenLastCalledWith('ab', false);
    expect([again.told('ab'), again.told('and again')]).toEqual([false, true]);
  });

  test('that was saved is made anew of what the server has', async () => {
    const { save } = make();
    const draft = draftOf('s1', '', save);
    draft.type('text');
    await leaveDraft('s1', draft);
    expect(draftOf('s1', 'from elsewhere', save).text).toBe('from elsewhere');
  });

  test('is the same while it is on its way', async () => {
    let fail!: (why: Error) => void;
    const save = vi.fn<Save>(() => new Promise((_done, failed) => (fail = failed)));
    const draft = draftOf('s1', '', save);
    draft.type('text');
    const left = leaveDraft('s1', draft);
    await vi.advanceTimersByTimeAsync(0);
    const again = draftOf('s1', '', save);
    fail(new Error('down'));
    await left;
    expect([again.text, again.dirty]).toEqual(['text', true]);
  });

  test('is saved at the end of the page', async () => {
    const save = failing();
    for (const id of ['s1', 's2']) {
      const draft = draftOf(id, '', save);
      draft.type(id);
      await leaveDraft(id, draft);
    }
    save.mockReset().mockResolvedValue();
    window.dispatchEvent(new Event('pagehide'));
    expect(save.mock.calls).toEqual([
      ['s1', true],
      ['s2', true],
    ]);
    await vi.advanceTimersByTimeAsync(0);
    window.dispatchEvent(new Event('pagehide'));
    expect(save).toHaveBeenCalledTimes(2);
  });
});

describe('a draft that is too long to outlive its page', () => {
  const long = 'ä'.repeat(31_000);
  const never = () => vi.fn<Save>(() => new Promise(() => undefined));

  /** Returns the module as a newly loaded page has it. */
  async function page() {
    vi.resetModules();
    return await import('./draft');
  }

  /** Simulates a page that ends, perhaps before its last save has arrived. */
  async function ended(told: string, typed: string, save: Save) {
    const draft = (await page()).draftOf('s1', told, save, () => 'then');
    draft.type(typed);
    void draft.flush(true);
    await vi.advanceTimersByTimeAsync(0);
  }

  /** Returns the draft of a page that begins after the end of another. */
  async function next(session: string, told: string, since = 'then') {
    const { text } = (await page()).draftOf(session, told, never(), () => since);
    return text.length < 100 ? text : `${text.length} characters`;
  }

  beforeEach(() => localStorage.clear());

  test('is there when the next one begins, and is saved there', async () => {
    await ended('told', long, never());
    expect(await next('s2', 'told')).toBe('told');
    const save = never();
    const draft = (await page()).draftOf('s1', 'told', save, () => 'then');
    expect(draft.text === long).toBe(true);
    await vi.advanceTimersByTimeAsync(500);
    expect(save.mock.calls.map(([text, last]) => [text === long, last])).toEqual([[true, false]]);
    expect(await next('s1', 'told')).toBe('told'); // a kept draft is used only once
  });

  test('is there for each of several sessions whose page ends', async () => {
    const { draftOf } = await page();
    for (const id of ['s1', 's2']) {
      const draft = draftOf(id, 'told', never(), () => 'then');
      draft.type(long + id);
      void draft.flush(true);
    }
    expect([await next('s1', 'told'), await next('s2', 'told')]).toEqual([
      '31002 characters',
      '31002 characters',
    ]);
    expect(localStorage.length).toBe(0);
  });

  test('is there where an older version has stored it', async () => {
    localStorage.setItem('deskhand.draft', JSON.stringify(['s1', 'then', long, 'told']));
    expect([await next('s2', 'told'), await next('s1', 'told')]).toEqual(['told', '31000 characters']);
    expect(localStorage.length).toBe(0);
  });

  test('takes the place of nothing that was written since', async () => {
    await ended('told', long, never());
    expect(await next('s1', 'of another window')).toBe('of another window');
    expect(await next('s1', 'told')).toBe('told');
  });

  test.each([
    ['what was on its way has arrived', 'one'],
    ['it has not', 'told'],
  ])('is there where an earlier save was on its way: %s', async (_, told) => {
    const draft = (await page()).draftOf('s1', 'told', never(), () => 'then');
    draft.type('one');
    void draft.flush();
    await vi.advanceTimersByTimeAsync(0);
    draft.type(long);
    void draft.flush(true);
    expect(await next('s1', told)).toBe('31000 characters');
  });

  test('is there where it was on its way itself when the page ended', async () => {
    const draft = (await page()).draftOf('s1', 'told', never(), () => 'then');
    draft.type(long);
    void draft.flush();
    await vi.advanceTimersByTimeAsync(0);
    void draft.flush(true);
    expect(await next('s1', 'told')).toBe('31000 characters');
  });

  test('is there though nothing was saved before, unless anything has happened since: it may have been sent', async () => {
    await ended('', long, never());
    expect(await next('s1', '')).toBe('31000 characters');
    await ended('', long, never());
    expect(await next('s1', '', 'later')).toBe('');
    expect(await next('s1', '')).toBe('');
  });

  test.each([
    ['as it stands', ''],
    ['and was typed on in', ', and more'],
  ])('is not kept while it is sent, %s', async (_, more) => {
    for (const told of ['', long.slice(1_000)]) {
      const draft = (await page()).draftOf('s1', told, never(), () => 'then');
      draft.type(long);
      draft.begin();
      draft.type(long + more);
      void draft.flush(true);
      expect(localStorage.length).toBe(0);
    }
  });

  test('is not saved once more where the message has it', async () => {
    const save = never();
    const draft = (await page()).draftOf('s1', '', save, () => 'then');
    draft.type(long);
    void draft.flush();
    draft.begin();
    void draft.flush(true);
    await vi.advanceTimersByTimeAsync(0);
    expect([save.mock.calls.length, localStorage.length]).toEqual([1, 0]);
  });

  test.each([
    ['that arrived all the same', long, () => Promise.resolve(), false],
    ['that may be kept alive for its bytes', 'ä'.repeat(29_000), never(), true],
  ])('one %s is not kept here', async (_, text, answer, lasts) => {
    const save = vi.fn<Save>(answer);
    await ended('told', text, save);
    expect(save.mock.calls.map(([, last]) => last)).toEqual([lasts]);
    expect(localStorage.length).toBe(0);
  });
});
