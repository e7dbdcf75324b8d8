import { describe, expect, test } from 'vitest';
import { check, initialValues, readForm, type Field } from './form';

function field(property: unknown, required = false): Field {
  const fields = readForm({ type: 'object', properties: { f: property }, required: required ? ['f'] : [] });
  const [only] = fields ?? [];
  if (!only) throw new Error('the schema was not read');
  return only;
}

const checked = (property: unknown, value: string | boolean | string[], required = false) => {
  const result = check([field(property, required)], { f: value });
  return result.ok ? result.content['f'] : result.errors['f'];
};

describe('reading a schema', () => {
  test('keeps the order, and tells titles, descriptions and what is required', () => {
    const fields = readForm({
      type: 'object',
      properties: { b: { type: 'string', title: 'Second', description: 'About b' }, a: { type: 'boolean' } },
      required: ['b'],
    });
    expect(fields?.map((one) => [one.name, one.label, one.description, one.required, one.kind])).toEqual([
      ['b', 'Second', 'About b', true, 'text'],
      ['a', 'a', '', false, 'boolean'],
    ]);
  });

  test.each([
    ['enum', { type: 'string', enum: ['x', 'y'] }, ['x', 'y']],
    [
      'enum with the older enumNames',
      { type: 'string', enum: ['x', 'y'], enumNames: ['Ex', 'Why'] },
      ['Ex', 'Why'],
    ],
    [
      'oneOf',
      { type: 'string', oneOf: [{ const: 'x', title: 'Ex', description: 'd' }, { const: 'y' }] },
      ['Ex', 'y'],
    ],
    ['multi-select by enum', { type: 'array', items: { type: 'string', enum: ['x', 'y'] } }, ['x', 'y']],
    ['multi-select by anyOf', { type: 'array', items: { anyOf: [{ const: 'x', title: 'Ex' }] } }, ['Ex']],
  ])('reads choices: %s', (_, property, labels) => {
    const read = field(property);
    expect('choices' in read && read.choices.map((choice) => choice.label)).toEqual(labels);
  });

  test.each([
    ['nothing', undefined],
    ['a list', []],
    ['an unknown property type', { properties: { a: { type: 'object' } } }],
    ['a property without a type', { properties: { a: {} } }],
    ['one unknown among known ones', { properties: { a: { type: 'string' }, b: { type: 'null' } } }],
    ['choices that are no text', { properties: { a: { type: 'string', enum: [1, 2] } } }],
    ['an empty choice', { properties: { a: { type: 'string', enum: [] } } }],
    ['a list of anything', { properties: { a: { type: 'array', items: { type: 'object' } } } }],
    ['a list of free text', { properties: { a: { type: 'array', items: { type: 'string' } } } }],
  ])('guesses nothing for %s', (_, schema) => {
    expect(readForm(schema)).toBeUndefined();
  });

  test('a form without fields is one: it asks for a yes', () => {
    expect(readForm({ type: 'object' })).toEqual([]);
    expect(readForm({ type: 7 })).toEqual([]);
  });

  test.each([
    ['password', {}, true],
    ['apiKey', {}, true],
    ['x', { title: 'Access token' }, true],
    ['x', { format: 'password' }, true],
    ['pin', {}, true],
    ['spinner', {}, false],
    ['name', { title: 'Name' }, false],
  ])('flags %s %j as a secret: %s', (name, property, secret) => {
    expect(readForm({ properties: { [name]: { type: 'string', ...property } } })?.[0]?.secret).toBe(secret);
  });
});

test('defaults stand in the controls, as far as they fit', () => {
  const fields = readForm({
    properties: {
      text: { type: 'string', default: 'hi' },
      number: { type: 'number', default: 0.5 },
      yes: { type: 'boolean', default: true },
      one: { type: 'string', enum: ['a', 'b'], default: 'b' },
      none: { type: 'string', enum: ['a'], default: 'gone' },
      some: { type: 'array', items: { enum: ['a', 'b', 'c'] }, default: ['c', 'x', 'a'] },
    },
  });
  expect(fields && initialValues(fields)).toEqual({
    text: 'hi',
    number: '0.5',
    yes: true,
    one: 'b',
    none: '',
    some: ['a', 'c'],
  });
});

test.each([
  ['date-time', '2026-03-01T09:00:30Z', /^2026-0[23]-\d\dT\d\d:\d\d$/],
  ['date-time', 'soon', /^$/],
  ['date', '2026-02-30', /^$/],
  ['date', '2026-02-28', /^2026-02-28$/],
  ['email', ' ada@example.com\n', /^ada@example\.com$/],
  [undefined, 'make\r\nclean', /^makeclean$/],
])('what a control for %s would not show of %j does not stand in it', (format, value, stands) => {
  const only = field({ type: 'string', default: value, ...(format ? { format } : {}) });
  expect(only.initial).toMatch(stands);
});

describe('checking', () => {
  test.each<[string, unknown, string | boolean | string[], unknown]>([
    ['text', { type: 'string' }, 'hi', 'hi'],
    ['too short', { type: 'string', minLength: 3 }, 'hi', { code: 'too_short', limit: 3 }],
    ['too long', { type: 'string', maxLength: 1 }, 'hi', { code: 'too_long', limit: 1 }],
    ['characters, not units', { type: 'string', maxLength: 1 }, '🚀', '🚀'],
    ['a pattern', { type: 'string', pattern: '^[a-z]+$' }, 'Hi', { code: 'pattern' }],
    ['a pattern that fits', { type: 'string', pattern: '^[a-z]+$' }, 'hi', 'hi'],
    ['a pattern that cannot be read', { type: 'string', pattern: '(' }, 'hi', 'hi'],
    ['a pattern without repetitions', { type: 'string', pattern: '^[A-Z]\\d$' }, 'A', { code: 'pattern' }],
    ['a pattern within a pattern, which is for the server', { type: 'string', pattern: '^(a+)+$' }, 'b', 'b'],
    ['one that repeats twice', { type: 'string', pattern: '^a*a*$' }, 'b', 'b'],
    ['one that may leave much out', { type: 'string', pattern: '^a?a?aa$' }, 'b', 'b'],
    ['one that may be one or the other', { type: 'string', pattern: '^a$|^aa$' }, 'b', 'b'],
    ['a pattern for a long text', { type: 'string', pattern: 'a*c' }, 'a'.repeat(1_001), 'a'.repeat(1_001)],
    ['e-mail', { type: 'string', format: 'email' }, 'ada', { code: 'email' }],
    ['e-mail that is one', { type: 'string', format: 'email' }, 'ada@example.com', 'ada@example.com'],
    ['address', { type: 'string', format: 'uri' }, 'example.com', { code: 'uri' }],
    ['address that is one', { type: 'string', format: 'uri' }, 'https://example.com', 'https://example.com'],
    ['date', { type: 'string', format: 'date' }, '2026-02-30', { code: 'date' }],
    ['date that is one', { type: 'string', format: 'date' }, '2026-02-28', '2026-02-28'],
    ['date with time', { type: 'string', format: 'date-time' }, 'noon', { code: 'date_time' }],
    [
      'date with time and zone',
      { type: 'string', format: 'date-time' },
      '2026-02-28T12:00:00Z',
      '2026-02-28T12:00:00Z',
    ],
    ['number', { type: 'number' }, '1.5', 1.5],
    ['number with spaces', { type: 'number' }, ' 2 ', 2],
    ['no number', { type: 'number' }, 'two', { code: 'number' }],
    ['whole number', { type: 'integer' }, '1.5', { code: 'integer' }],
    ['number too small', { type: 'number', minimum: 2 }, '1', { code: 'too_small', limit: 2 }],
    ['number too large', { type: 'integer', maximum: 2 }, '3', { code: 'too_large', limit: 2 }],
    ['zero is a number', { type: 'integer', minimum: 0 }, '0', 0],
    ['boolean', { type: 'boolean' }, true, true],
    ['boolean no', { type: 'boolean' }, false, false],
    ['choice', { type: 'string', enum: ['a'] }, 'a', 'a'],
    ['choice that is none', { type: 'string', enum: ['a'] }, 'b', { code: 'choice' }],
    [
      'several, in the schema’s order',
      { type: 'array', items: { enum: ['a', 'b'] } },
      ['b', 'a'],
      ['a', 'b'],
    ],
    [
      'too few',
      { type: 'array', items: { enum: ['a', 'b', 'c'] }, minItems: 2 },
      ['a'],
      { code: 'too_few', limit: 2 },
    ],
    [
      'too many',
      { type: 'array', items: { enum: ['a', 'b'] }, maxItems: 1 },
      ['a', 'b'],
      { code: 'too_many', limit: 1 },
    ],
  ])('%s', (_, property, value, expected) => {
    expect(checked(property, value)).toEqual(expected);
  });

  test('a date with a time of here gets its zone', () => {
    const value = checked({ type: 'string', format: 'date-time' }, '2026-02-28T12:00');
    expect(value).toBe(new Date('2026-02-28T12:00').toISOString());
  });

  test.each<[unknown, string | string[]]>([
    [{ type: 'string' }, ''],
    [{ type: 'number' }, ''],
    [{ type: 'string', enum: ['a'] }, ''],
    [{ type: 'array', items: { enum: ['a'] }, minItems: 1 }, []],
  ])('what is optional and empty is left out, what is required is asked for: %j', (property, value) => {
    expect(check([field(property)], { f: value })).toEqual({ ok: true, content: {} });
    expect(checked(property, value, true)).toEqual({ code: 'required' });
  });

  test('all errors are told at once', () => {
    const fields =
      readForm({ properties: { a: { type: 'string' }, b: { type: 'integer' } }, required: ['a'] }) ?? [];
    expect(check(fields, { a: '', b: 'x' })).toEqual({
      ok: false,
      errors: { a: { code: 'required' }, b: { code: 'integer' } },
    });
  });
});
