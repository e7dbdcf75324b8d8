import { flushSync, mount, unmount } from 'svelte';
import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest';
import type { Request } from '../api/records';
import { client, inbox } from '../state/state';
import { request, tool } from '../test/records';
import RequestCard from './RequestCard.svelte';

const options = [
  { id: 'yes', name: 'Allow', kind: 'allow_once' },
  { id: 'no', name: 'Reject', kind: 'reject_once' },
];

let ended: (() => void) | undefined;

async function show(what: Request, more: { leave?: () => void; later?: () => void; inInbox?: boolean } = {}) {
  const answer = vi.spyOn(inbox, 'answer').mockResolvedValue(true);
  const component = mount(RequestCard, {
    target: document.body,
    props: {
      request: what,
      tool: undefined,
      cwd: '/home/ada/app',
      leave: more.leave ?? (() => undefined),
      later: more.later ?? (() => undefined),
      inInbox: more.inInbox ?? false,
      write: () => undefined,
    },
  });
  flushSync();
  await here();
  ended = () => {
    ended = undefined;
    void unmount(component);
  };
  const card = document.querySelector<HTMLElement>('[data-testid=request]');
  if (!card) throw new Error('no card');
  return { answer, card, component };
}

/** Waits until parts of the page are loaded, without moving the clock. */
async function here() {
  await import('./OtherCard.svelte');
  await new Promise((done) => setImmediate(done));
  flushSync();
}

function press(target: HTMLElement, key: string, init: KeyboardEventInit = {}): KeyboardEvent {
  const event = new KeyboardEvent('keydown', { key, bubbles: true, cancelable: true, ...init });
  target.dispatchEvent(event);
  flushSync();
  return event;
}

const button = (name: string) =>
  [...document.querySelectorAll('button')].find((one) => one.textContent?.trim().startsWith(name));

beforeEach(() => {
  vi.useFakeTimers({ toFake: ['performance', 'setTimeout', 'clearTimeout'] });
  vi.spyOn(client, 'suggestRules').mockResolvedValue({ suggestions: [] });
});
afterEach(() => {
  ended?.();
  vi.useRealTimers();
  document.body.replaceChildren();
});

describe('an approval', () => {
  test('has no focus of its own, and none on Allow when it is gone to', async () => {
    const { component, card } = await show(request({ options }));
    expect(document.activeElement).toBe(document.body);
    component.focus();
    expect(document.activeElement).toBe(card);
  });

  test('says how to get to its keys, and shows them as keys only while they work', async () => {
    const { component, card } = await show(request({ options }));
    expect(card.querySelector('[data-testid=keys]')?.textContent).toBe('Ctrl+. to answer by keyboard');
    expect(card.classList.contains('away')).toBe(true);
    component.focus();
    flushSync();
    expect(card.classList.contains('away')).toBe(false);
    card.blur();
    flushSync();
    expect(card.classList.contains('away')).toBe(true);
  });

  test('takes no key for 400 ms, not even Enter on a button', async () => {
    const { answer, card } = await show(request({ options }));
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

  test('rejects by R', async () => {
    const { answer, card } = await show(request({ options }));
    vi.advanceTimersByTime(500);
    press(card, 'r');
    expect(answer).toHaveBeenCalledWith(expect.anything(), { optionId: 'no' });
  });

  test('is not answered by Escape', async () => {
    const leave = vi.fn();
    const { answer, card } = await show(request({ options }), { leave });
    vi.advanceTimersByTime(500);
    press(card, 'Escape');
    expect(leave).toHaveBeenCalled();
    expect(answer).not.toHaveBeenCalled();
  });

  test('shows the agent’s own options in its order', async () => {
    await show(request({ options: [...options].reverse() }));
    expect(
      [...document.querySelectorAll('footer .theirs button')].map(
        (one) => one.textContent?.trim().split(/\s/)[0],
      ),
    ).toEqual(['Reject', 'Allow']);
  });

  describe('of a tool call', () => {
    const text = (say: string) => ({ type: 'content', content: { type: 'text', text: say } });
    const diff = { type: 'diff', path: '/home/ada/app/a.ts', oldText: 'a', newText: 'b' };
    const asking = async (part: Parameters<typeof tool>[0]) =>
      (await show(request({ options, tool: tool({ kind: 'execute', ...part }) }))).card;

    test.each<[string, Record<string, unknown>, string]>([
      ['arguments', { command: 'git', args: ['push', '--force'] }, '--force'],
      ['another directory', { command: ['ls'], cwd: '/etc' }, '/etc'],
      ['the environment', { cmd: 'ls', env: { LD_PRELOAD: 'x.so' } }, 'LD_PRELOAD'],
      ['another script', { command: 'ls', script: 'rm -r x' }, 'rm -r x'],
      [
        'a way out of the sandbox',
        { command: 'ls', dangerouslyDisableSandbox: true },
        'DisableSandbox": true',
      ],
      ['more rights', { command: ['ls'], with_escalated_permissions: true }, 'escalated_permissions": true'],
      ['what cannot be seen', { command: 'ls', args: ['a\u202eb'] }, 'a[U+202E]b'],
    ])('shows what changes its command: %s', async (_, rawInput, shown) => {
      const card = await asking({ rawInput, content: [text('Lists files')] });
      expect(card.querySelectorAll('details')).toHaveLength(1);
      expect(card.textContent).toContain(shown);
    });

    test.each<[string, Parameters<typeof tool>[0]]>([
      [
        'a command and words about it',
        { rawInput: { command: 'ls', description: 'x', timeout: 9, env: {} } },
      ],
      ['its own directory', { rawInput: { command: 'ls', cwd: '/home/ada/app', sudo: false, user: null } }],
      ['the change itself', { kind: 'edit', rawInput: { path: 'a.ts' }, content: [diff] }],
      ['a plan', { kind: 'switch_mode', rawInput: { plan: 'Do it' }, content: [text('Do it')] }],
    ])('shows no more than that where it is %s', async (_, part) => {
      expect((await asking(part)).querySelector('details')).toBeNull();
    });

    test('shows its input beside words of the agent’s, to the first character', async () => {
      const rawInput = { sql: `DROP${' '.repeat(70_000)};` };
      const card = await asking({ kind: 'other', rawInput, content: [text('Looks something up')] });
      expect(card.textContent).toContain('Looks something up');
      expect(card.textContent).toContain('DROP');
    });

    test('shows what is asked for beside a plan', async () => {
      const rawInput = { plan: 'Do it', allowedPrompts: ['run tests'] };
      const card = await asking({ kind: 'switch_mode', rawInput, content: [text('Do it')] });
      expect(card.textContent).toContain('run tests');
      expect(card.textContent.match(/Do it/g)).toHaveLength(1);
    });
  });

  describe('with a note', () => {
    const field = () => document.querySelector<HTMLTextAreaElement>('textarea');

    async function noting(inInbox = false) {
      const leave = vi.fn();
      const shown = await show(request({ options }), { inInbox, leave });
      shown.component.focus();
      button('Reject with a note')?.click();
      await vi.waitFor(() => {
        flushSync();
        expect(document.activeElement).toBe(field());
      });
      const text = field();
      if (!text) throw new Error('no field');
      text.value = 'Use the other one';
      text.dispatchEvent(new InputEvent('input', { bubbles: true }));
      flushSync();
      vi.advanceTimersByTime(500);
      shown.component.focus();
      return { ...shown, leave };
    }

    afterEach(() => sessionStorage.clear());

    test('that is being written is answered by no key beside its field', async () => {
      const { answer, card } = await noting(true);
      for (const key of ['1', '2', 'r', 'R', 'a', 'm', 'n']) press(card, key);
      expect(answer).not.toHaveBeenCalled();
      expect(field()?.value).toBe('Use the other one');
    });

    test('is not sent or closed by a key that ends the composing of a character', async () => {
      const { answer } = await noting();
      const text = field();
      if (!text) throw new Error('no field');
      press(text, 'Enter', { keyCode: 229 }); // as Safari reports it
      press(text, 'Escape', { isComposing: true });
      expect(answer).not.toHaveBeenCalled();
      expect(field()?.value).toBe('Use the other one');
      press(text, 'Enter');
      expect(answer).toHaveBeenCalledWith(expect.anything(), { optionId: 'no', note: 'Use the other one' });
    });

    test('is closed by Escape, and what was written is there again', async () => {
      const { answer, card, leave } = await noting();
      const back = button('Back');
      back?.focus();
      press(back ?? card, 'Escape');
      expect(field()).toBeNull();
      expect(document.activeElement).toBe(card);
      expect(leave).not.toHaveBeenCalled();
      expect(answer).not.toHaveBeenCalled();
      button('Reject with a note')?.click();
      await vi.waitFor(() => {
        flushSync();
        expect(field()?.value).toBe('Use the other one');
      });
    });
  });

  describe('with rules', () => {
    const rule = (effect: 'allow' | 'deny', scope: 'session' | 'directory', pattern = 'git status') => ({
      effect,
      scope,
      pattern,
      kind: 'execute' as const,
      text: `Run ${pattern}`,
    });

    /** Shows the card once the server's rule suggestions have come. */
    async function offering(suggestions: ReturnType<typeof rule>[], danger: ('sudo' | 'secrets')[] = []) {
      vi.spyOn(client, 'suggestRules').mockResolvedValue({ suggestions, danger });
      const shown = await show(request({ options }));
      await vi.waitFor(() => expect(client.suggestRules).toHaveResolved());
      await Promise.resolve();
      flushSync();
      return shown;
    }

    const menu = () => document.querySelector<HTMLElement>('[role=menu]');
    async function opened(): Promise<HTMLElement> {
      return vi.waitFor(() => {
        flushSync();
        const found = menu();
        if (!found) throw new Error('no menu');
        return found;
      });
    }

    test('has none where none may be made', async () => {
      const { card } = await offering([rule('allow', 'session')]);
      vi.advanceTimersByTime(500);
      expect(button('Allow by rule…')).toBeDefined();
      expect(button('Deny by rule…')).toBeUndefined();
      press(card, 'n');
      await vi.dynamicImportSettled();
      flushSync();
      expect(menu()).toBeNull();
    });

    test('answers by what is chosen, with the option for once', async () => {
      const { answer, card } = await offering([rule('allow', 'session'), rule('allow', 'directory')]);
      press(card, 'm');
      await vi.dynamicImportSettled();
      flushSync();
      expect(menu()).toBeNull(); // the guard covers this key too
      vi.advanceTimersByTime(500);
      press(card, 'm');
      const list = await opened();
      for (const key of ['1', '2', 'r', 'Escape']) press(list, key);
      expect(answer).not.toHaveBeenCalled();
      expect(menu()).toBeNull();
      press(card, 'm');
      (await opened()).querySelectorAll<HTMLElement>('[role=menuitem]')[1]?.click();
      await vi.waitFor(() =>
        expect(answer).toHaveBeenCalledWith(expect.anything(), {
          optionId: 'yes',
          remember: { scope: 'directory', pattern: 'git status' },
        }),
      );
    });

    test('answers by no key while its menu is on its way', async () => {
      const { answer, card } = await offering([rule('allow', 'session'), rule('deny', 'session')]);
      vi.advanceTimersByTime(500);
      press(card, 'n');
      for (const key of ['1', 'r']) press(card, key);
      expect(answer).not.toHaveBeenCalled();
      await opened();
    });

    test('what rejects makes a rule that denies', async () => {
      const { answer, card } = await offering([rule('allow', 'session'), rule('deny', 'session')]);
      vi.advanceTimersByTime(500);
      press(card, 'n');
      (await opened()).querySelector<HTMLElement>('[role=menuitem]')?.click();
      await vi.waitFor(() =>
        expect(answer).toHaveBeenCalledWith(expect.anything(), {
          optionId: 'no',
          remember: { scope: 'session', pattern: 'git status' },
        }),
      );
    });

    test('says what is dangerous', async () => {
      await offering([rule('allow', 'session')], ['sudo', 'secrets']);
      const labels = [...document.querySelectorAll('[data-testid=dangers] li')];
      expect(labels.map((one) => one.textContent?.trim())).toEqual([
        'Runs with administrator rights',
        'Touches files that hold secrets',
      ]);
    });

    test('says so when it cannot be found out, and asks again', async () => {
      vi.spyOn(client, 'suggestRules').mockRejectedValueOnce(new Error('down'));
      await show(request({ options }));
      await vi.waitFor(() => {
        flushSync();
        expect(button('Try again')).toBeDefined();
      });
      vi.mocked(client.suggestRules).mockResolvedValue({ suggestions: [rule('allow', 'session')] });
      button('Try again')?.click();
      await vi.waitFor(() => {
        flushSync();
        expect(button('Allow by rule…')).toBeDefined();
      });
      expect(button('Try again')).toBeUndefined();
    });
  });

  test('gives the focus back when it was answered from within', async () => {
    const leave = vi.fn();
    const { component, card } = await show(request({ options }), { leave });
    component.focus();
    vi.advanceTimersByTime(500);
    press(card, '1');
    await vi.waitFor(() => expect(leave).toHaveBeenCalled());
  });

  test('is answered once, however often it is clicked', async () => {
    const { answer } = await show(request({ options }));
    button('Allow')?.click();
    button('Allow')?.click();
    expect(answer).toHaveBeenCalledTimes(1);
  });

  test('that somebody else was first to answer is not left with dead buttons', async () => {
    const { answer } = await show(request({ options }));
    answer.mockResolvedValue(false);
    button('Allow')?.click();
    flushSync();
    expect(button('Allow')?.disabled).toBe(true);
    await Promise.resolve();
    await Promise.resolve();
    flushSync();
    expect(button('Allow')?.disabled).toBe(false);
  });

  describe('by the pointer', () => {
    const pressed = (name: string, detail = 1) => {
      const init = { bubbles: true, cancelable: true, detail };
      button(name)?.dispatchEvent(new MouseEvent('click', init));
      flushSync();
    };

    test('is not answered for 400 ms, nor by the second click of two', async () => {
      vi.advanceTimersByTime(10_000);
      const { answer } = await show(request({ options }));
      pressed('Allow');
      vi.advanceTimersByTime(399);
      pressed('Allow');
      expect(answer).not.toHaveBeenCalled();
      ended?.();
      document.body.replaceChildren();
      await show(request({ id: 'r2', options }));
      vi.advanceTimersByTime(400);
      flushSync();
      pressed('Allow', 2);
      expect(answer).not.toHaveBeenCalled();
      pressed('Allow');
      expect(answer).toHaveBeenCalledTimes(1);
    });

    test('is not answered where the answers have moved under the press', async () => {
      const { answer } = await show(request({ options }));
      vi.advanceTimersByTime(1_000);
      flushSync();
      const footer = document.querySelector<HTMLElement>('footer');
      if (!footer) throw new Error('no footer');
      footer.getBoundingClientRect = () => new DOMRect(0, 80, 300, 40);
      const press = () => {
        button('Allow')?.dispatchEvent(new Event('pointerdown', { bubbles: true }));
        pressed('Allow');
      };
      press();
      expect(answer).not.toHaveBeenCalled();
      expect(footer.getAttribute('aria-disabled')).toBe('true');
      vi.advanceTimersByTime(400);
      flushSync();
      press();
      expect(answer).toHaveBeenCalledTimes(1);
    });

    test('is not answered by a press that began before it counts', async () => {
      const { answer } = await show(request({ options }));
      vi.advanceTimersByTime(300);
      button('Allow')?.dispatchEvent(new Event('pointerdown', { bubbles: true }));
      vi.advanceTimersByTime(300);
      pressed('Allow');
      expect(answer).not.toHaveBeenCalled();
    });

    test('is not answered for 400 ms where it takes the place of another', async () => {
      await show(request({ options }));
      ended?.();
      document.body.replaceChildren();
      const { answer } = await show(request({ id: 'r2', options }));
      pressed('Allow');
      vi.advanceTimersByTime(399);
      pressed('Allow');
      expect(answer).not.toHaveBeenCalled();
      // Screen readers and browser drivers are told.
      expect(document.querySelector('footer')?.getAttribute('aria-disabled')).toBe('true');
      vi.advanceTimersByTime(1);
      flushSync();
      expect(document.querySelector('footer')?.hasAttribute('aria-disabled')).toBe(false);
      pressed('Allow');
      expect(answer).toHaveBeenCalledTimes(1);
    });

    test('is answered by who presses again and again since it is there', async () => {
      await show(request({ options }));
      ended?.();
      document.body.replaceChildren();
      const { answer } = await show(request({ id: 'r2', options }));
      pressed('Allow', 1);
      vi.advanceTimersByTime(300);
      pressed('Allow', 2);
      expect(answer).not.toHaveBeenCalled();
      vi.advanceTimersByTime(300);
      flushSync();
      pressed('Allow', 3);
      expect(answer).toHaveBeenCalledTimes(1);
    });
  });
});

describe('a form', () => {
  const form = request({
    kind: 'form',
    title: 'Details',
    schema: { properties: { name: { type: 'string', title: 'Name' } }, required: ['name'] },
  });

  test('is checked before it is sent', async () => {
    const { answer } = await show(form);
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

  test('has Decline and Cancel apart, and Escape offers them with Later', async () => {
    const later = vi.fn();
    const { answer, card } = await show(form, { later });
    vi.advanceTimersByTime(500);
    press(card, 'Escape');
    expect(answer).not.toHaveBeenCalled();
    expect(document.activeElement?.textContent?.trim()).toBe('Later');
    button('Later')?.click();
    expect(later).toHaveBeenCalled();
    button('Cancel')?.click();
    expect(answer).toHaveBeenLastCalledWith(expect.anything(), { action: 'cancel' });
  });

  test('takes back what was chosen and need not be, also what it begins with', async () => {
    sessionStorage.clear();
    const size = { type: 'string', enum: ['small', 'large'], default: 'large' };
    const optional = { ...form, schema: { properties: { size } } };
    const { answer } = await show(optional);
    const radios = () => [...document.querySelectorAll<HTMLInputElement>('[type=radio]')];
    expect(radios().map((one) => one.checked)).toEqual([false, true, false]);
    radios().at(-1)?.click();
    flushSync();
    ended?.();
    document.body.replaceChildren();
    await show(optional);
    expect(radios().map((one) => one.checked)).toEqual([false, false, true]);
    document.querySelector('form')?.dispatchEvent(new SubmitEvent('submit', { cancelable: true }));
    expect(answer).toHaveBeenCalledWith(expect.anything(), { action: 'accept', content: {} });
  });

  test('of an unknown kind is a raw card, which can only be dismissed', async () => {
    const { answer, card } = await show({ ...form, schema: { properties: { x: { type: 'object' } } } });
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

  test('is answered by digit and Enter', async () => {
    const { answer, card } = await show(question);
    vi.advanceTimersByTime(500);
    press(card, '2');
    document.querySelector('form')?.dispatchEvent(new SubmitEvent('submit', { cancelable: true }));
    expect(answer).toHaveBeenCalledWith(expect.anything(), { answers: [['b']] });
  });

  test('says that only its choices are accepted, unless own words are', async () => {
    await show(question);
    expect(document.body.textContent).toContain('Only these choices are accepted.');
    expect(document.querySelector('input[type=text]')).toBeNull();
  });

  test('keeps one’s own words when a digit takes another choice', async () => {
    sessionStorage.clear();
    const [only] = question.questions ?? [];
    if (!only) throw new Error('no question');
    const { answer, card } = await show({ ...question, questions: [{ ...only, allowFreeText: true }] });
    const field = () => document.querySelector<HTMLInputElement>('input[type=text]');
    vi.advanceTimersByTime(500);
    press(card, '3');
    const text = field();
    if (!text) throw new Error('no field');
    text.value = 'Neither of them';
    text.dispatchEvent(new InputEvent('input', { bubbles: true }));
    flushSync();
    press(card, '1');
    expect(field()).toBeNull();
    expect(card.textContent).toContain('Neither of them');
    const form = document.querySelector('form');
    form?.dispatchEvent(new SubmitEvent('submit', { cancelable: true }));
    expect(answer).toHaveBeenLastCalledWith(expect.anything(), { answers: [['a']] });
    press(card, '3');
    expect(field()?.value).toBe('Neither of them');
    sessionStorage.clear();
  });

  test('declined is rejected', async () => {
    const { answer } = await show(question);
    button('Decline')?.click();
    expect(answer).toHaveBeenCalledWith(expect.anything(), { reject: true });
  });
});

describe('what a directory would start', () => {
  const long = `command: /opt/tools/run ${'--flag=value '.repeat(60)}--last`;
  const trust = request({
    kind: 'trust',
    title: 'Start what is in this directory?',
    options: [
      { id: 'approve', name: 'Approve and start', kind: 'allow_always' },
      { id: 'without', name: 'Start without these', kind: 'reject_once' },
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

  test('is shown to its end, and every line of it where it has changed', async () => {
    const { card } = await show(trust);
    const [tools, pdf] = card.querySelectorAll('[data-executable]');
    expect(tools?.querySelector('pre')?.textContent).toBe(long);
    expect(
      [...(pdf?.querySelectorAll('.line') ?? [])].map((line) => line.textContent.trim().replace(/\s+/g, ' ')),
    ).toEqual(['one', 'two', 'three', 'four', 'five', 'six', '− Removed: seven', '+ Added: SEVEN']);
    expect(pdf?.textContent).toContain('Changed since it was approved');
  });

  test('is not approved by what was typed before, nor by a focus that fell on it', async () => {
    const { answer, card, component } = await show(trust);
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

  test('has the options in their order, none of them standing out, and R starts without', async () => {
    const { answer, card } = await show(trust);
    const buttons = [...card.querySelectorAll('footer button')];
    expect(buttons.map((one) => one.textContent.trim().replace(/\s+/g, ' '))).toEqual([
      'Approve and start 1',
      'Start without these 2',
    ]);
    expect(buttons.some((one) => one.classList.contains('accent'))).toBe(false);
    vi.advanceTimersByTime(500);
    press(card, 'r');
    expect(answer).toHaveBeenCalledWith(expect.anything(), { optionId: 'without' });
  });
});

describe('an address', () => {
  const address = request({
    kind: 'url',
    title: 'Sign in',
    url: 'https://sign-in.example/x?code=1',
    host: 'sign-in.example',
  });
  const opened = vi.fn();

  beforeEach(() => {
    opened.mockReset();
    vi.spyOn(window, 'open').mockImplementation(opened);
  });

  const settled = () => vi.waitFor(() => expect(button('Open in')?.disabled ?? true).toBe(true));

  test('is shown whole, with its host, and warns where the name may look like another', async () => {
    await show(address);
    const shown = document.querySelector('[data-testid=address]');
    expect(shown?.textContent).toBe('https://sign-in.example/x?code=1');
    expect(shown?.querySelector('strong')?.textContent).toBe('sign-in.example');
    expect(document.querySelector('[role=note]')).toBeNull();
    ended?.();
    document.body.replaceChildren();
    await show({
      ...address,
      url: 'http://xn--e.example/',
      host: 'xn--e.example',
      hostUnicode: 'е.example',
      punycode: true,
    });
    const warning = [...document.querySelectorAll('[role=note]')].map((one) => one.textContent).join(' ');
    expect(warning).toContain('xn--e.example');
    expect(warning).toContain('е.example');
    expect(warning).toContain('not encrypted');
  });

  test('opens only after the answer was taken, and in no way that can look back', async () => {
    const { answer } = await show(address);
    expect(opened).not.toHaveBeenCalled();
    button('Open in')?.click();
    expect(opened).not.toHaveBeenCalled();
    await settled();
    expect(answer).toHaveBeenCalledWith(expect.anything(), { action: 'accept' });
    expect(opened.mock.calls).toEqual([[address.url, '_blank', 'noopener,noreferrer']]);
  });

  test.each([
    ['somebody else was first', () => Promise.resolve(false)],
    ['the answer was not taken', () => Promise.reject(new Error('no'))],
  ])('is not opened when %s', async (_, outcome) => {
    const { answer } = await show(address);
    answer.mockImplementation(outcome);
    button('Open in')?.click();
    await vi.waitFor(() => expect(answer).toHaveBeenCalled());
    await Promise.resolve();
    await Promise.resolve();
    expect(opened).not.toHaveBeenCalled();
  });

  test('has two ways to say no, and Escape says nothing', async () => {
    const later = vi.fn();
    const { answer, card, component } = await show(address, { later });
    component.focus();
    expect(document.activeElement).toBe(card);
    vi.advanceTimersByTime(500);
    press(card, 'Escape');
    expect(answer).not.toHaveBeenCalled();
    expect(document.activeElement?.textContent).toContain('Later');
    expect(['Decline', 'Cancel', 'Later', 'Back'].map((name) => button(name) !== undefined)).toEqual([
      true,
      true,
      true,
      true,
    ]);
    button('Later')?.click();
    expect(later).toHaveBeenCalled();
    button('Cancel')?.click();
    expect(answer).toHaveBeenCalledWith(expect.anything(), { action: 'cancel' });
    expect(opened).not.toHaveBeenCalled();
  });
});

describe('what was typed', () => {
  const form = request({
    kind: 'form',
    schema: {
      type: 'object',
      properties: {
        name: { type: 'string', title: 'Name' },
        api_key: { type: 'string', title: 'API key' },
        size: { type: 'string', title: 'Size', enum: ['small', 'large'] },
        tests: { type: 'boolean', title: 'Tests' },
        systems: { type: 'array', title: 'Systems', items: { type: 'string', enum: ['linux', 'macos'] } },
      },
    },
  });
  const all = () => [...document.querySelectorAll<HTMLInputElement>('input')];

  test('into a form is there again, but for what may be a secret', async () => {
    sessionStorage.clear();
    await show(form);
    const [name, secret, , large, , tests, linux] = all();
    for (const [input, text] of [
      [name, 'ada'],
      [secret, 'hunter2'],
    ] as const) {
      if (!input) throw new Error('no field');
      input.value = text;
      input.dispatchEvent(new Event('input', { bubbles: true }));
    }
    large?.click();
    tests?.click();
    linux?.click();
    flushSync();
    expect(JSON.stringify(sessionStorage)).not.toContain('hunter2');
    ended?.();
    document.body.replaceChildren();
    await show(form);
    expect(all().map((input) => (input.type === 'text' ? input.value : input.checked))).toEqual([
      'ada',
      '',
      false,
      true,
      false, // no answer
      true,
      true,
      false,
    ]);
  });

  test('or chosen of a question is there again', async () => {
    sessionStorage.clear();
    const question = request({
      kind: 'question',
      questions: [
        { prompt: 'One?', options: ['a', 'b'].map((id) => ({ id, label: id })), allowFreeText: true },
        { prompt: 'Two?', options: ['c', 'd'].map((id) => ({ id, label: id })), multiSelect: true },
      ],
    });
    await show(question);
    all()[1]?.click();
    flushSync();
    all()[3]?.click();
    all()[4]?.click();
    flushSync();
    ended?.();
    document.body.replaceChildren();
    await show(question);
    expect(all().map((input) => input.checked)).toEqual([false, true, false, true, true]);
  });
});
