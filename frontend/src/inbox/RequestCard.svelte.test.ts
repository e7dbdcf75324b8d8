import { flushSync, mount, unmount } from 'svelte';
import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest';
import type { Request } from '../api/records';
import { app } from '../app.svelte';
import { request } from '../test/records';
import RequestCard from './RequestCard.svelte';

const options = [
  { id: 'yes', name: 'Allow', kind: 'allow_once' },
  { id: 'no', name: 'Reject', kind: 'reject_once' },
];

let ended: (() => void) | undefined;

function show(what: Request, more: { leave?: () => void; later?: () => void } = {}) {
  const answer = vi.spyOn(app, 'answer').mockResolvedValue();
  const component = mount(RequestCard, {
    target: document.body,
    props: {
      request: what,
      tool: undefined,
      cwd: '/home/ada/app',
      leave: more.leave ?? (() => undefined),
      later: more.later ?? (() => undefined),
      write: () => undefined,
    },
  });
  flushSync();
  ended = () => void unmount(component);
  const card = document.querySelector<HTMLElement>('[data-testid=request]');
  if (!card) throw new Error('no card');
  return { answer, card, component };
}

function press(target: HTMLElement, key: string, init: KeyboardEventInit = {}): KeyboardEvent {
  const event = new KeyboardEvent('keydown', { key, bubbles: true, cancelable: true, ...init });
  target.dispatchEvent(event);
  flushSync();
  return event;
}

const button = (name: string) =>
  [...document.querySelectorAll('button')].find((one) => one.textContent?.trim().startsWith(name));

// jsdom lays nothing out.
class Nowhere {
  observe = () => undefined;
  disconnect = () => undefined;
}
vi.stubGlobal('IntersectionObserver', Nowhere);

beforeEach(() => vi.useFakeTimers({ toFake: ['performance', 'setTimeout', 'clearTimeout'] }));
afterEach(() => {
  ended?.();
  vi.useRealTimers();
  document.body.replaceChildren();
});

describe('an approval', () => {
  test('has no focus of its own, and none on Allow when it is gone to', () => {
    const { component, card } = show(request({ options }));
    expect(document.activeElement).toBe(document.body);
    component.focus();
    expect(document.activeElement).toBe(card);
  });

  test('takes no key for 400 ms, not even Enter on a button', () => {
    const { answer, card } = show(request({ options }));
    press(card, '1');
    const allow = button('Allow');
    expect(allow && press(allow, 'Enter').defaultPrevented).toBe(true);
    vi.advanceTimersByTime(399);
    press(card, '1');
    expect(answer).not.toHaveBeenCalled();
    vi.advanceTimersByTime(1);
    press(card, '1', { repeat: true });
    expect(answer).not.toHaveBeenCalled();
    press(card, '1');
    expect(answer).toHaveBeenCalledWith(expect.anything(), { optionId: 'yes' });
  });

  test('rejects by R', () => {
    const { answer, card } = show(request({ options }));
    vi.advanceTimersByTime(500);
    press(card, 'r');
    expect(answer).toHaveBeenCalledWith(expect.anything(), { optionId: 'no' });
  });

  test('is not answered by Escape', () => {
    const leave = vi.fn();
    const { answer, card } = show(request({ options }), { leave });
    vi.advanceTimersByTime(500);
    press(card, 'Escape');
    expect(leave).toHaveBeenCalled();
    expect(answer).not.toHaveBeenCalled();
  });

  test('shows the agent’s own options in its order', () => {
    show(request({ options: [...options].reverse() }));
    expect(
      [...document.querySelectorAll('footer button')].map((one) => one.textContent?.trim().split(/\s/)[0]),
    ).toEqual(['Reject', 'Allow']);
  });

  test('gives the focus back when it was answered from within', async () => {
    const leave = vi.fn();
    const { component, card } = show(request({ options }), { leave });
    component.focus();
    vi.advanceTimersByTime(500);
    press(card, '1');
    await vi.waitFor(() => expect(leave).toHaveBeenCalled());
  });

  test('is answered once, however often it is clicked', () => {
    const { answer } = show(request({ options }));
    button('Allow')?.click();
    button('Allow')?.click();
    expect(answer).toHaveBeenCalledTimes(1);
  });
});

describe('a form', () => {
  const form = request({
    kind: 'form',
    title: 'Details',
    schema: { properties: { name: { type: 'string', title: 'Name' } }, required: ['name'] },
  });

  test('is checked before it is sent', () => {
    const { answer } = show(form);
    const element = document.querySelector('form');
    element?.dispatchEvent(new SubmitEvent('submit', { cancelable: true }));
    flushSync();
    expect(answer).not.toHaveBeenCalled();
    expect(document.querySelector('[aria-invalid=true]')).not.toBeNull();
    const field = document.querySelector<HTMLInputElement>('input');
    if (field) field.value = 'Ada';
    field?.dispatchEvent(new InputEvent('input', { bubbles: true }));
    flushSync();
    element?.dispatchEvent(new SubmitEvent('submit', { cancelable: true }));
    expect(answer).toHaveBeenCalledWith(expect.anything(), { action: 'accept', content: { name: 'Ada' } });
  });

  test('has Decline and Cancel apart, and Escape offers them with Later', () => {
    const later = vi.fn();
    const { answer, card } = show(form, { later });
    vi.advanceTimersByTime(500);
    press(card, 'Escape');
    expect(answer).not.toHaveBeenCalled();
    expect(document.activeElement?.textContent?.trim()).toBe('Later');
    button('Later')?.click();
    expect(later).toHaveBeenCalled();
    button('Cancel')?.click();
    expect(answer).toHaveBeenLastCalledWith(expect.anything(), { action: 'cancel' });
  });

  test('of an unknown kind is a raw card, which can only be dismissed', () => {
    const { answer, card } = show({ ...form, schema: { properties: { x: { type: 'object' } } } });
    expect(card.querySelector('input')).toBeNull();
    button('Dismiss')?.click();
    expect(answer).toHaveBeenCalledWith(expect.anything(), { action: 'cancel' });
  });
});

describe('a question', () => {
  const question = request({
    kind: 'question',
    title: 'Which?',
    questions: [
      {
        prompt: 'Which?',
        options: [
          { id: 'a', label: 'A' },
          { id: 'b', label: 'B' },
        ],
      },
    ],
  });

  test('is answered by digit and Enter', () => {
    const { answer, card } = show(question);
    vi.advanceTimersByTime(500);
    press(card, '2');
    document.querySelector('form')?.dispatchEvent(new SubmitEvent('submit', { cancelable: true }));
    expect(answer).toHaveBeenCalledWith(expect.anything(), { answers: [['b']] });
  });

  test('says that only its choices are accepted, unless own words are', () => {
    show(question);
    expect(document.body.textContent).toContain('Only these choices are accepted.');
    expect(document.querySelector('input[type=text]')).toBeNull();
  });

  test('declined is rejected', () => {
    const { answer } = show(question);
    button('Decline')?.click();
    expect(answer).toHaveBeenCalledWith(expect.anything(), { reject: true });
  });
});

describe('what a directory would start', () => {
  const long = `command: /opt/tools/run ${'--flag=value '.repeat(60)}--last`;
  const trust = request({
    kind: 'trust',
    title: 'Start what this directory brings?',
    options: [
      { id: 'approve', name: 'Approve and start', kind: 'allow_always' },
      { id: 'without', name: 'Start without them', kind: 'reject_once' },
    ],
    executables: [
      { kind: 'mcp', name: 'tools', hash: 'a'.repeat(64), detail: long, approved: false },
      {
        kind: 'skill',
        name: 'pdf',
        hash: 'b'.repeat(64),
        detail: 'one\ntwo\nthree\nfour\nfive\nsix\nSEVEN',
        before: 'one\ntwo\nthree\nfour\nfive\nsix\nseven',
        approved: false,
      },
    ],
  });

  test('is shown to its end, and every line of it where it has changed', () => {
    const { card } = show(trust);
    const [tools, pdf] = card.querySelectorAll('[data-executable]');
    expect(tools?.querySelector('pre')?.textContent).toBe(long);
    expect(
      [...(pdf?.querySelectorAll('.line') ?? [])].map((line) => line.textContent.trim().replace(/\s+/g, ' ')),
    ).toEqual(['one', 'two', 'three', 'four', 'five', 'six', '− Removed: seven', '+ Added: SEVEN']);
    expect(pdf?.textContent).toContain('Changed since it was approved');
  });

  test('is not approved by what was typed before, nor by a focus that fell on it', () => {
    const { answer, card, component } = show(trust);
    component.focus();
    expect(document.activeElement).toBe(card);
    press(card, '1');
    vi.advanceTimersByTime(399);
    press(card, '1');
    press(card, 'Enter');
    expect(answer).not.toHaveBeenCalled();
    vi.advanceTimersByTime(1);
    press(card, 'Enter');
    expect(answer).not.toHaveBeenCalled();
    press(card, '1');
    expect(answer).toHaveBeenCalledWith(expect.anything(), { optionId: 'approve' });
  });

  test('has the options in their order, none of them standing out, and R starts without', () => {
    const { answer, card } = show(trust);
    const buttons = [...card.querySelectorAll('footer button')];
    expect(buttons.map((one) => one.textContent.trim().replace(/\s+/g, ' '))).toEqual([
      'Approve and start 1',
      'Start without them 2',
    ]);
    expect(buttons.some((one) => one.classList.contains('accent'))).toBe(false);
    vi.advanceTimersByTime(500);
    press(card, 'r');
    expect(answer).toHaveBeenCalledWith(expect.anything(), { optionId: 'without' });
  });
});
