import { expect, test } from 'vitest';
import catalogue from '../../../backend/agents/catalogue.json';
import { logoOf } from './logos';

test('a logo is one drawing, without a title, a script or an address', () => {
  const ids = catalogue.agents.map(({ id, deskhand }) => deskhand?.alias ?? id);
  const drawn = ids.filter((id) => logoOf(id) !== '');
  expect(drawn).toEqual(expect.arrayContaining(['amp', 'claude', 'cursor', 'gemini', 'opencode']));
  for (const id of drawn) {
    const logo = logoOf(id);
    expect(logo, id).toMatch(/^<svg [^]*<path [^]*<\/svg>$/);
    expect(logo, id).not.toMatch(/<title|<script|<a\b|href|\son\w+=|url\(/);
  }
});

test('an agent without a logo, or with the name of a property of every object, has none', () => {
  for (const id of ['', 'nobody', 'constructor', '__proto__', 'toString']) expect(logoOf(id), id).toBe('');
});
