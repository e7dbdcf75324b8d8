import { flushSync, mount, unmount } from 'svelte';
import { afterEach, describe, expect, test, vi } from 'vitest';
import type { Request } from '../api/records';
import { inbox } from '../state/state';
import { request } from '../test/records';
import { check, initialValues, keptValues, readForm, restoredValues } from './form';
import { forgetTyped } from '../state/drafts';
import RequestCard from './RequestCard.svelte';

// Agents may send anything. The tests generate thousands of schemas, questions and addresses, well-formed and broken. None may crash the
// sheet, and each must leave the person a way out.

/** A generator of pseudo-random numbers. A failure names its seed, which repeats the case. */
class Chance {
  #state: number;

  constructor(seed: number) {
    this.#state = seed;
  }

  next(): number {
    this.#state = (this.#state + 0x6d2b79f5) | 0;
    let mixed = Math.imul(this.#state ^ (this.#state >>> 15), 1 | this.#state);
    mixed = (mixed + Math.imul(mixed ^ (mixed >>> 7), 61 | mixed)) ^ mixed;
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32;
  }

  below(limit: number): number {
    return Math.floor(this.next() * limit);
  }

  of<T>(list: readonly T[]): T {
    return list[this.below(list.length)] as T;
  }

  list<T>(most: number, make: () => T): T[] {
    return Array.from({ length: this.below(most + 1) }, make);
  }
}

const words = [
  '',
  ' ',
  'name',
  'api_key',
  '__proto__',
  'constructor',
  'toString',
  'hasOwnProperty',
  '0',
  'a"b<c>&',
  '‮drawkcab',
  '\u0000',
  '\ud800',
  '😀'.repeat(3),
  'x'.repeat(3000),
  '{agent}',
];
const numbers = [0, -1, 1, 0.1, 1e308, -1e308, 5e-324, 2 ** 53, 4294967296];

function anything(chance: Chance, depth = 3): unknown {
  const scalar = [null, true, false, chance.of(numbers), chance.of(words)];
  if (depth === 0 || chance.next() < 0.5) return chance.of(scalar);
  if (chance.next() < 0.5) return chance.list(4, () => anything(chance, depth - 1));
  return Object.fromEntries(chance.list(4, () => [chance.of(words), anything(chance, depth - 1)]));
}

/** Returns the given value, and now and then another. */
const mostly = (chance: Chance, meant: unknown): unknown =>
  chance.next() < 0.08 ? anything(chance, 2) : meant;

function choices(chance: Chance): Record<string, unknown> {
  const made = chance.list(12, () => chance.of(words));
  if (chance.next() < 0.4)
    return { enum: mostly(chance, made), enumNames: mostly(chance, made.slice(chance.below(3))) };
  const titled = made.map((value) =>
    mostly(chance, { const: mostly(chance, value), title: mostly(chance, value), description: value }),
  );
  return { [chance.of(['oneOf', 'anyOf'])]: mostly(chance, titled) };
}

function property(chance: Chance): unknown {
  const limits = Object.fromEntries(
    ['minimum', 'maximum', 'minLength', 'maxLength', 'minItems', 'maxItems']
      .filter(() => chance.next() < 0.3)
      .map((name) => [name, mostly(chance, chance.of(numbers))]),
  );
  const type = chance.of(['string', 'string', 'number', 'integer', 'boolean', 'array', 'object', 'hologram']);
  return mostly(chance, {
    type: mostly(chance, type),
    title: mostly(chance, chance.of(words)),
    description: mostly(chance, chance.of(words)),
    default: anything(chance, 1),
    ...(chance.next() < 0.3 ? { format: chance.of(['email', 'uri', 'date', 'date-time', 'odd']) } : {}),
    ...(chance.next() < 0.3
      ? { pattern: chance.of(['^a+$', '(', '[', '\\', '(?<n>x)\\k<n>', '\\p{L}', '(a']) }
      : {}),
    ...limits,
    ...(type === 'array'
      ? { items: mostly(chance, { type: 'string', ...choices(chance) }) }
      : chance.next() < 0.3
        ? choices(chance)
        : {}),
  });
}

function schema(chance: Chance): unknown {
  const properties = Object.fromEntries(chance.list(6, () => [chance.of(words), property(chance)]));
  return mostly(chance, {
    type: mostly(chance, 'object'),
    properties: mostly(chance, properties),
    required: mostly(
      chance,
      Object.keys(properties).filter(() => chance.next() < 0.5),
    ),
  });
}

const typed = ['', ' ', 'a', '1', '1e400', '-0', 'x@y', 'https://a', '2026-02-30', '2026-11-22T10:00', '💥'];

let ended: (() => void) | undefined;
afterEach(() => {
  ended?.();
  ended = undefined;
  vi.restoreAllMocks();
  document.body.replaceChildren();
});

async function show(what: Request): Promise<HTMLElement> {
  const component = mount(RequestCard, {
    target: document.body,
    props: { request: what, tool: undefined, cwd: '/w', leave: vi.fn(), later: vi.fn(), write: vi.fn() },
  });
  await import('./OtherCard.svelte'); // loaded on demand
  await new Promise((done) => setImmediate(done));
  flushSync();
  ended = () => {
    ended = undefined;
    void unmount(component);
  };
  const card = document.querySelector<HTMLElement>('[data-testid=request]');
  if (!card) throw new Error('there is no card');
  return card;
}

/** Uses every control of the card, and sends the answer. */
function work(card: HTMLElement, chance: Chance): void {
  for (const input of card.querySelectorAll<HTMLInputElement>('input')) {
    if (chance.next() < 0.3) continue;
    if (['radio', 'checkbox'].includes(input.type)) {
      input.click();
      continue;
    }
    input.value = chance.of(typed);
    input.dispatchEvent(new Event('input', { bubbles: true }));
  }
  flushSync();
  card.querySelector('form')?.dispatchEvent(new SubmitEvent('submit', { cancelable: true }));
  flushSync();
}

const seeds = (count: number) => Array.from({ length: count }, (_, seed) => seed);

describe('made-up forms', () => {
  test('are read, filled in, kept and checked without a crash', () => {
    let read = 0;
    for (const seed of seeds(6000)) {
      const chance = new Chance(seed);
      const fields = readForm(seed % 8 === 0 ? anything(chance, 4) : schema(chance));
      if (!fields) continue;
      read++;
      const values = initialValues(fields);
      const filled = Object.fromEntries(
        fields.map((field) => [
          field.name,
          field.kind === 'text' ? chance.of(typed) : (values[field.name] ?? ''),
        ]),
      );
      for (const those of [values, filled, restoredValues(fields, anything(chance)), {}]) {
        const result = check(fields, those);
        const kept = JSON.parse(JSON.stringify(keptValues(fields, those))) as unknown;
        expect(Object.keys(restoredValues(fields, kept)).sort(), `seed ${seed}`).toEqual(
          Object.keys(values).sort(),
        );
        if (!result.ok) expect(Object.keys(result.errors).length, `seed ${seed}`).toBeGreaterThan(0);
      }
    }
    expect(read, 'hardly any is a form: the test looks at nothing').toBeGreaterThan(1000);
  });

  test('are shown, worked on and left without a crash', async () => {
    const sent = vi.spyOn(inbox, 'answer').mockResolvedValue(true);
    const kinds = { form: 0, raw: 0 };
    for (const seed of seeds(80)) {
      const chance = new Chance(seed);
      const what = request({ id: `r${seed}`, kind: 'form', title: chance.of(words), schema: schema(chance) });
      const card = await show(what);
      kinds[card.querySelector('form') ? 'form' : 'raw']++;
      work(card, chance);
      // Every card has a button that declines or dismisses the request.
      expect(card.querySelectorAll('footer button').length, `seed ${seed}`).toBeGreaterThan(0);
      ended?.();
      // Shown again, the card has the same values.
      await expect(show(what), `seed ${seed}`).resolves.toBeDefined();
      ended?.();
      forgetTyped(what.id);
    }
    expect(kinds.form).toBeGreaterThan(15);
    expect(kinds.raw).toBeGreaterThan(5);
    expect(sent).toHaveBeenCalled();
  });

  test('as are questions and addresses', async () => {
    vi.spyOn(inbox, 'answer').mockResolvedValue(true);
    for (const seed of seeds(90)) {
      const chance = new Chance(seed);
      const options = () =>
        chance.list(12, () => ({
          id: chance.of(words),
          label: chance.of(words),
          description: chance.of(words),
        }));
      const questions = chance.list(4, () => ({
        prompt: chance.of(words),
        options: options(),
        multiSelect: chance.next() < 0.5,
        allowFreeText: chance.next() < 0.5,
      }));
      const what =
        seed % 3 === 0
          ? request({
              id: `r${seed}`,
              kind: 'url',
              url: chance.of(['', 'https://a.example/x', ...words]),
              host: chance.of(['', 'a.example', ...words]),
              punycode: chance.next() < 0.5,
              hostUnicode: chance.of(words),
            })
          : request({ id: `r${seed}`, kind: 'question', questions });
      const card = await show(what);
      work(card, chance);
      expect(card.querySelectorAll('footer button').length, `seed ${seed}`).toBeGreaterThan(0);
      ended?.();
      forgetTyped(what.id);
    }
  });
});
