import { isObject, type Json } from '../content/blocks';
import { localTime } from '../rules/writing';

// Reads the forms of agents, which are a flat object in a subset of JSON Schema, into fields, and reads the typed values back into an
// answer. A form with anything unknown is shown as JSON as a whole.

export interface Choice {
  value: string;
  label: string;
  description?: string;
}

interface Base {
  name: string;
  label: string;
  description: string;
  required: boolean;
  /** The field seems to ask for a password or key, which the protocol forbids. */
  secret: boolean;
}

type Format = 'email' | 'uri' | 'date' | 'date-time';

export type Field = Base &
  (
    | {
        kind: 'text';
        format: Format | undefined;
        minLength: number | undefined;
        maxLength: number | undefined;
        pattern: string | undefined;
        initial: string;
      }
    | { kind: 'choice'; choices: Choice[]; initial: string }
    | { kind: 'number'; integer: boolean; min: number | undefined; max: number | undefined; initial: string }
    | { kind: 'boolean'; initial: boolean }
    | {
        kind: 'several';
        choices: Choice[];
        min: number | undefined;
        max: number | undefined;
        initial: string[];
      }
  );

/** The values of the controls by field name. */
type Values = Record<string, string | boolean | string[]>;

export type FieldError =
  | { code: 'required' }
  | { code: 'too_short' | 'too_long' | 'too_few' | 'too_many'; limit: number }
  | { code: 'too_small' | 'too_large'; limit: number }
  | { code: 'number' | 'integer' | 'pattern' | 'email' | 'uri' | 'date' | 'date_time' | 'choice' };

type Checked = { ok: true; content: Json } | { ok: false; errors: Record<string, FieldError> };

/**
 * Returns the fields of a schema in its order; undefined when a property cannot be shown as a control. The schema's own type is not read:
 * by the protocol it is always an object.
 */
export function readForm(schema: unknown): Field[] | undefined {
  if (!isObject(schema)) return undefined;
  const properties = schema['properties'] ?? {};
  if (!isObject(properties)) return undefined;
  const required = Array.isArray(schema['required']) ? schema['required'] : [];
  const fields: Field[] = [];
  for (const [name, property] of Object.entries(properties)) {
    const field = readField(name, property, required.includes(name));
    if (!field) return undefined;
    fields.push(field);
  }
  return fields;
}

function readField(name: string, property: unknown, required: boolean): Field | undefined {
  if (!isObject(property)) return undefined;
  const label = text(property['title']) || name;
  const description = text(property['description']);
  const base: Base = { name, label, description, required, secret: looksSecret(name, label, property) };
  switch (property['type']) {
    case 'string':
      return readString(base, property);
    case 'number':
    case 'integer':
      return {
        ...base,
        kind: 'number',
        integer: property['type'] === 'integer',
        min: number(property['minimum']),
        max: number(property['maximum']),
        initial: typeof property['default'] === 'number' ? String(property['default']) : '',
      };
    case 'boolean':
      return { ...base, kind: 'boolean', initial: property['default'] === true };
    case 'array':
      return readSeveral(base, property);
    default:
      return undefined;
  }
}

function readString(base: Base, property: Json): Field | undefined {
  const initial = text(property['default']);
  if (isSet(property['enum']) || isSet(property['oneOf'])) {
    const choices = readChoices(property, 'oneOf');
    if (!choices) return undefined;
    const known = choices.some((choice) => choice.value === initial);
    return { ...base, kind: 'choice', choices, initial: known ? initial : '' };
  }
  const format = readFormat(property['format']);
  return {
    ...base,
    kind: 'text',
    format,
    minLength: number(property['minLength']),
    maxLength: number(property['maxLength']),
    pattern: typeof property['pattern'] === 'string' ? property['pattern'] : undefined,
    initial: standing(initial, format),
  };
}

/** Returns the initial text as the control can show it, so that nothing invisible is sent. */
function standing(initial: string, format: Format | undefined): string {
  if (format === 'date-time') return instant(initial) === undefined ? '' : localTime(initial);
  if (format === 'date') return isDate(initial) ? initial : '';
  const line = initial.replaceAll(/[\r\n]/g, '');
  return format === undefined ? line : line.trim();
}

function readSeveral(base: Base, property: Json): Field | undefined {
  const items = property['items'];
  if (!isObject(items) || (isSet(items['type']) && items['type'] !== 'string')) return undefined;
  const choices = readChoices(items, 'anyOf') ?? readChoices(items, 'oneOf');
  if (!choices) return undefined;
  const preset = Array.isArray(property['default']) ? property['default'].map(String) : [];
  return {
    ...base,
    kind: 'several',
    choices,
    min: number(property['minItems']),
    max: number(property['maxItems']),
    initial: choices.map((choice) => choice.value).filter((value) => preset.includes(value)),
  };
}

/** Reads choices from `enum` (with the older `enumNames`), or from a list of constants with titles. */
function readChoices(schema: Json, constants: 'oneOf' | 'anyOf'): Choice[] | undefined {
  const plain = schema['enum'];
  if (Array.isArray(plain)) {
    const names = Array.isArray(schema['enumNames']) ? schema['enumNames'] : [];
    if (plain.length === 0 || !plain.every((value): value is string => typeof value === 'string'))
      return undefined;
    return plain.map((value, index) => ({ value, label: text(names[index]) || value }));
  }
  const titled = schema[constants];
  if (!Array.isArray(titled) || titled.length === 0) return undefined;
  const choices: Choice[] = [];
  for (const one of titled) {
    if (!isObject(one) || typeof one['const'] !== 'string') return undefined;
    const description = text(one['description']);
    choices.push({
      value: one['const'],
      label: text(one['title']) || one['const'],
      ...(description ? { description } : {}),
    });
  }
  return choices;
}

function readFormat(value: unknown): Format | undefined {
  return value === 'email' || value === 'uri' || value === 'date' || value === 'date-time'
    ? value
    : undefined;
}

const secretWords =
  /pass(?:word|phrase|code)|secret|token|api[ _-]?key|private[ _-]?key|credential|\bpin\b|\botp\b/i;

function looksSecret(name: string, label: string, property: Json): boolean {
  const spaced = name.replace(/([a-z])([A-Z])/g, '$1 $2').replaceAll('_', ' ');
  return property['format'] === 'password' || secretWords.test(spaced) || secretWords.test(label);
}

/** Treats null like an absent value. */
function isSet(value: unknown): boolean {
  return value !== undefined && value !== null;
}

function text(value: unknown): string {
  return typeof value === 'string' ? value : '';
}

function number(value: unknown): number | undefined {
  return typeof value === 'number' && Number.isFinite(value) ? value : undefined;
}

export function initialValues(fields: readonly Field[]): Values {
  return Object.fromEntries(
    fields.map((field) => [field.name, Array.isArray(field.initial) ? [...field.initial] : field.initial]),
  );
}

/** Returns the values that are stored while the form waits: all but possible secrets. */
export function keptValues(fields: readonly Field[], values: Values): Values {
  return Object.fromEntries(
    fields.filter((field) => !field.secret).map((field) => [field.name, values[field.name] ?? field.initial]),
  );
}

/** Returns the stored values where they fit their fields, and initial values elsewhere. */
export function restoredValues(fields: readonly Field[], kept: unknown): Values {
  const values = initialValues(fields);
  if (!isObject(kept)) return values;
  const restored = fields.map((field): [string, Values[string]] => [
    field.name,
    fitting(field, Object.hasOwn(kept, field.name) ? kept[field.name] : undefined) ??
      values[field.name] ??
      '',
  ]);
  return Object.fromEntries(restored);
}

function fitting(field: Field, kept: unknown): Values[string] | undefined {
  switch (field.kind) {
    case 'boolean':
      return typeof kept === 'boolean' ? kept : undefined;
    case 'several':
      if (!Array.isArray(kept)) return undefined;
      return field.choices.map((choice) => choice.value).filter((value) => kept.includes(value));
    case 'choice':
      return kept === '' || field.choices.some((choice) => choice.value === kept) ? String(kept) : undefined;
    default:
      return typeof kept === 'string' ? kept : undefined;
  }
}

/** Returns the content of an answer, or the errors by field. An empty optional field is left out. */
export function check(fields: readonly Field[], values: Values): Checked {
  // Lists of pairs instead of objects, because a field may be named __proto__.
  const content: [string, unknown][] = [];
  const errors: [string, FieldError][] = [];
  for (const field of fields) {
    const [value, error] = checkField(field, values[field.name]);
    if (error) errors.push([field.name, error]);
    else if (value !== undefined) content.push([field.name, value]);
  }
  return errors.length > 0
    ? { ok: false, errors: Object.fromEntries(errors) }
    : { ok: true, content: Object.fromEntries(content) };
}

type FieldResult = [value: unknown, error?: FieldError];

function checkField(field: Field, value: Values[string] | undefined): FieldResult {
  switch (field.kind) {
    case 'boolean':
      return [value === true];
    case 'several':
      return checkSeveral(field, Array.isArray(value) ? value : []);
    default: {
      const typed = typeof value === 'string' ? value : '';
      // Spaces satisfy a required text. An empty optional text counts as absent.
      if (typed === '') return field.required ? [undefined, { code: 'required' }] : [undefined];
      if (field.kind === 'number') return checkNumber(field, typed);
      if (field.kind === 'choice') {
        return field.choices.some((choice) => choice.value === typed)
          ? [typed]
          : [undefined, { code: 'choice' }];
      }
      return checkText(field, typed);
    }
  }
}

function checkSeveral(field: Extract<Field, { kind: 'several' }>, chosen: string[]): FieldResult {
  const value = field.choices.map((choice) => choice.value).filter((one) => chosen.includes(one));
  if (value.length === 0 && !field.required) return [undefined];
  const least = Math.max(field.min ?? 0, field.required ? 1 : 0);
  if (value.length < least)
    return [undefined, least === 1 ? { code: 'required' } : { code: 'too_few', limit: least }];
  if (field.max !== undefined && value.length > field.max)
    return [undefined, { code: 'too_many', limit: field.max }];
  return [value];
}

function checkNumber(field: Extract<Field, { kind: 'number' }>, typed: string): FieldResult {
  const trimmed = typed.trim();
  const value = Number(trimmed);
  if (trimmed === '' || !Number.isFinite(value))
    return [undefined, { code: field.integer ? 'integer' : 'number' }];
  if (field.integer && !Number.isSafeInteger(value)) return [undefined, { code: 'integer' }];
  if (field.min !== undefined && value < field.min)
    return [undefined, { code: 'too_small', limit: field.min }];
  if (field.max !== undefined && value > field.max)
    return [undefined, { code: 'too_large', limit: field.max }];
  return [value];
}

function checkText(field: Extract<Field, { kind: 'text' }>, typed: string): FieldResult {
  // JSON Schema counts characters, not UTF-16 units.
  const length = [...typed].length;
  if (field.minLength !== undefined && length < field.minLength) {
    return [undefined, { code: 'too_short', limit: field.minLength }];
  }
  if (field.maxLength !== undefined && length > field.maxLength) {
    return [undefined, { code: 'too_long', limit: field.maxLength }];
  }
  if (field.pattern !== undefined && !matches(field.pattern, typed)) return [undefined, { code: 'pattern' }];
  switch (field.format) {
    case 'email':
      return /^[^\s@]+@[^\s@]+$/.test(typed) ? [typed] : [undefined, { code: 'email' }];
    case 'uri':
      return isUri(typed) ? [typed] : [undefined, { code: 'uri' }];
    case 'date':
      return isDate(typed) ? [typed] : [undefined, { code: 'date' }];
    case 'date-time': {
      const full = instant(typed);
      return full === undefined ? [undefined, { code: 'date_time' }] : [full];
    }
    default:
      return [typed];
  }
}

/** A pattern and a text of this length take no engine long, as long as the pattern has a single repetition. */
const longestRun = 1_000;

/**
 * Checks a text against an agent's pattern. A pattern with more than one repetition, a group or an alternative may make this engine
 * backtrack for minutes, as (a+)+ does with thirty characters. Such a pattern, or an invalid one, is left to the server, whose engine never
 * backtracks.
 */
function matches(pattern: string, typed: string): boolean {
  const repeats = pattern.match(/[*+?{]/g) ?? [];
  if (repeats.length > 1 || /[(|]/.test(pattern) || Math.max(pattern.length, typed.length) > longestRun)
    return true;
  try {
    return new RegExp(pattern, 'u').test(typed);
  } catch {
    return true;
  }
}

function isUri(typed: string): boolean {
  try {
    return /^[a-z][a-z0-9+.-]*:/i.test(typed) && new URL(typed).href !== '';
  } catch {
    return false;
  }
}

function isDate(typed: string): boolean {
  const parts = /^(\d{4})-(\d\d)-(\d\d)$/.exec(typed);
  if (!parts) return false;
  const date = new Date(`${typed}T00:00:00Z`);
  return !Number.isNaN(date.getTime()) && date.toISOString().startsWith(typed);
}

/** Returns a date in RFC 3339. The browser's control gives local time without a zone, which is converted. */
function instant(typed: string): string | undefined {
  if (!/^\d{4}-\d\d-\d\d[Tt ]\d\d:\d\d/.test(typed)) return undefined;
  const date = new Date(typed);
  if (Number.isNaN(date.getTime())) return undefined;
  return /(?:[Zz]|[+-]\d\d:\d\d)$/.test(typed) ? typed : date.toISOString();
}
