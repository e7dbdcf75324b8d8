import { afterEach, expect, test } from 'vitest';

// The tests' setup registers the listener, as main.ts does.

let heard: string[] = [];
const ends: (() => void)[] = [];
afterEach(() => {
  for (const end of ends.splice(0)) end();
  heard = [];
  document.body.replaceChildren();
});

/** A field with key listeners on the field and around it, in both phases. */
function field(html: string): HTMLElement {
  document.body.innerHTML = html;
  const found = document.querySelector<HTMLElement>('[data-field]');
  if (!found) throw new Error(`no field in ${html}`);
  const around: [string, EventTarget][] = [
    ['window', window],
    ['document', document],
    ['body', document.body],
    ['field', found],
  ];
  for (const [name, target] of around) {
    for (const capture of [true, false]) {
      const hear = (event: Event) => heard.push(`${name} ${event.type}`);
      for (const type of ['keydown', 'keypress', 'keyup', 'cancel']) {
        target.addEventListener(type, hear, capture);
        ends.push(() => target.removeEventListener(type, hear, capture));
      }
    }
  }
  return found;
}

function press(at: HTMLElement, key: string, of: KeyboardEventInit = {}, type = 'keydown'): KeyboardEvent {
  const event = new KeyboardEvent(type, { key, bubbles: true, cancelable: true, ...of });
  at.dispatchEvent(event);
  return event;
}

const fields = [
  '<textarea data-field></textarea>',
  '<input data-field>',
  '<input type="search" data-field>',
  '<input type="password" data-field>',
  '<div contenteditable="true" data-field></div>',
  '<dialog open><form><input data-field></form></dialog>',
  '<ul role="listbox" tabindex="0" data-field></ul>',
];

test.each(fields)('no part of the page hears of a key that an input method takes in %s', (html) => {
  const at = field(html);
  for (const key of ['Enter', 'Escape', 'Tab', 'ArrowDown', ' ', '1', 'a', 'Process']) {
    for (const of of [{ isComposing: true }, { keyCode: 229 }, { isComposing: true, keyCode: 229 }]) {
      for (const type of ['keydown', 'keypress', 'keyup']) {
        // preventDefault would keep the key from the input method.
        expect(press(at, key, of, type).defaultPrevented, `${type} ${key}`).toBe(false);
      }
    }
  }
  expect(heard).toEqual([]);
  press(at, 'Enter');
  expect(heard).toContain('field keydown');
  expect(heard).toContain('window keydown');
});

test('a terminal hears of its own keys, whoever takes them', () => {
  const at = field('<div data-terminal><textarea data-field></textarea></div>');
  press(at, 'Enter', { keyCode: 229 });
  expect(heard).toContain('field keydown');
});

test('the Escape of a composition cancels no dialog, the next one does', () => {
  const at = field('<dialog data-field><input></dialog>');
  const input = at.querySelector('input') ?? at;
  const cancel = () => {
    const event = new Event('cancel', { cancelable: true });
    at.dispatchEvent(event);
    return event.defaultPrevented;
  };
  press(input, 'Escape', { keyCode: 229 });
  expect(cancel()).toBe(true);
  expect(heard).not.toContain('field cancel');
  expect(cancel()).toBe(false); // a cancel by another way, such as the Back gesture
  press(input, 'Escape', { keyCode: 229 });
  press(input, 'Escape');
  expect(cancel()).toBe(false);
  expect(heard).toContain('field cancel');
});
