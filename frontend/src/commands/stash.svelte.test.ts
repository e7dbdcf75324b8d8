import { flushSync } from 'svelte';
import { afterEach, beforeEach, expect, test, vi } from 'vitest';
import { conversations, toasts } from '../state/state';
import { session } from '../test/records';
import type * as Stash from './stash.svelte';
import { forgetWaiting, stash, stashed } from './stash.svelte';

/** A field, and a server that stores its draft when the test says so. */
class Field {
  text = $state('');
  readonly of: string;

  constructor(of = 's1') {
    this.of = of;
    conversations.sessions.set(of, session({ id: of }));
  }

  read = () => this.text;
  write = (text: string) => void (this.text = text);
  /** The server stores the field's text and reports it. */
  kept(draft = this.text) {
    conversations.sessions.set(this.of, session({ id: this.of, draft }));
    flushSync();
  }
  press() {
    stash(this, this.of);
    flushSync();
  }
  putAway(...texts: string[]) {
    for (const text of texts) {
      this.text = text;
      this.press();
      this.kept();
    }
  }
}

beforeEach(() => {
  localStorage.clear();
  conversations.sessions.clear();
  forgetWaiting();
});
afterEach(() => conversations.sessions.clear());

/** Loads the module again, as another window with the same storage does. */
async function otherWindow(): Promise<typeof Stash> {
  const again = './stash.svelte?other'; // a second instance of the module
  const other = (await import(again)) as typeof Stash;
  other.forgetWaiting();
  return other;
}

test('a message that is put away is there until it is brought back', () => {
  const field = new Field();
  field.putAway('half a thought', 'another');
  expect([field.text, stashed()]).toEqual(['', ['half a thought', 'another']]);
  field.press();
  field.kept();
  expect([field.text, stashed()]).toEqual(['another', ['half a thought']]);
  field.text = '';
  field.press();
  field.kept();
  expect([field.text, stashed()]).toEqual(['half a thought', []]);
  field.text = '';
  field.press();
  expect(field.text).toBe('');
});

test('what is brought back is put away still, until the server has it as the draft', () => {
  const field = new Field();
  field.putAway('half a thought');
  field.press();
  expect([field.text, stashed()]).toEqual(['half a thought', ['half a thought']]);
  field.text += ', and more';
  field.kept('half a thought'); // a save of an earlier text, which the next save follows
  expect(stashed()).toEqual(['half a thought']);
  field.kept();
  expect(stashed()).toEqual([]);
});

test('what is sent before it was a draft has gone to the server, too', () => {
  const field = new Field();
  field.putAway('half a thought');
  field.press();
  field.text = '';
  flushSync();
  expect(stashed()).toEqual([]);
});

test('a draft that happens to be the same, and is about to be emptied, keeps nothing', () => {
  const field = new Field();
  field.text = 'half a thought';
  field.kept();
  field.press(); // the server does not know yet that the text was taken out
  field.press();
  expect([field.text, stashed()]).toEqual(['half a thought', ['half a thought']]);
  field.kept('');
  expect(stashed()).toEqual(['half a thought']);
  field.kept();
  expect(stashed()).toEqual([]);
});

test('what waits for its draft is brought back once, and put away again as the one that it is', () => {
  const field = new Field();
  const other = new Field('s2');
  field.putAway('one', 'two');
  field.press();
  other.press();
  expect([field.text, other.text]).toEqual(['two', 'one']);
  field.press();
  expect([field.text, stashed()]).toEqual(['', ['one', 'two']]);
  field.kept();
  other.kept();
  expect(stashed()).toEqual(['two']);
});

test('a conversation that is deleted meanwhile takes nothing with it', () => {
  const field = new Field();
  field.putAway('half a thought');
  field.press();
  conversations.sessions.delete('s1');
  flushSync();
  const next = new Field('s2');
  next.press();
  expect([next.text, stashed()]).toEqual(['half a thought', ['half a thought']]);
});

test('two windows put away and bring back, and nothing is lost', async () => {
  const other = await otherWindow();
  const [here, there] = [new Field(), new Field('s2')];
  here.putAway('one');
  there.text = 'two';
  other.stash(there, 's2');
  there.kept();
  expect(stashed()).toEqual(['one', 'two']);
  here.press();
  other.stash(there, 's2'); // before the draft of the first is saved
  expect([here.text, there.text]).toEqual(['two', 'two']);
  here.kept();
  there.kept();
  expect([stashed(), other.stashed()]).toEqual([['one'], ['one']]);
});

test('where twenty messages were put away another one stays where it is', () => {
  const toast = vi.spyOn(toasts, 'show').mockReturnValue(undefined);
  const field = new Field();
  field.putAway(...Array.from({ length: 21 }, (_, n) => `thought ${n + 1}`));
  expect(field.text).toBe('thought 21');
  expect(stashed()).toHaveLength(20);
  expect(stashed()[0]).toBe('thought 1');
  expect(toast).toHaveBeenLastCalledWith({ text: expect.stringMatching(/20/) as string, tone: 'danger' });
  field.text = '';
  field.press();
  expect(field.text).toBe('thought 20');
});

test('a message that the browser has no room for stays where it is', () => {
  const toast = vi.spyOn(toasts, 'show').mockReturnValue(undefined);
  const field = new Field();
  const full = vi.spyOn(Storage.prototype, 'setItem').mockImplementation(() => {
    throw new DOMException('full', 'QuotaExceededError');
  });
  field.putAway('long');
  full.mockRestore();
  expect([field.text, stashed()]).toEqual(['long', []]);
  expect(toast).toHaveBeenLastCalledWith({
    text: expect.stringMatching(/no room/) as string,
    tone: 'danger',
  });
});

test('what was put away in one piece is there, in its order, also when there was no room to part it', () => {
  localStorage.setItem('deskhand.stash', JSON.stringify(['one', 7, 'two']));
  const full = vi.spyOn(Storage.prototype, 'setItem').mockImplementation(() => {
    throw new DOMException('full', 'QuotaExceededError');
  });
  expect(stashed()).toEqual(['one', 'two']);
  full.mockRestore();
  const field = new Field();
  field.putAway('three');
  expect(stashed()).toEqual(['one', 'two', 'three']);
  expect(localStorage.getItem('deskhand.stash')).toBeNull();
  localStorage.setItem('deskhand.stash', '{oops');
  expect(stashed()).toEqual(['one', 'two', 'three']);
});
