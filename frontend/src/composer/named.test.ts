import { expect, test, vi } from 'vitest';
import type { Client } from '../api/client';
import type { Session } from '../api/records';
import { conversationsFor, Skills } from './named';

const one = (id: string, title: string, updatedAt: string) =>
  ({ id, title, updatedAt, cwd: `/home/ada/${id}` }) as Session;

test('other conversations are offered, what fits best and is newest first', () => {
  const all = [
    one('a', 'Lamp and wind', '2026-01-01T00:00:00Z'),
    one('b', 'The lamp', '2026-01-03T00:00:00Z'),
    one('c', 'A lamp again', '2026-01-04T00:00:00Z'),
    one('d', 'This one, of the lamp', '2026-01-05T00:00:00Z'),
    one('e', 'Something else', '2026-01-06T00:00:00Z'),
  ];
  const found = conversationsFor('lamp', all, 'd', '/home/ada');
  expect(found.map(({ id }) => id)).toEqual(['a', 'c', 'b']);
  expect(found[0]?.about).toBe('~/a');
  expect(conversationsFor('', all, 'd').map(({ id }) => id)).toEqual(['e', 'c', 'b', 'a']);
});

type Entries = Client['skillEntries'];
const skill = (name: string, more = {}) => ({ name, description: `about ${name}`, files: [], ...more });

test('skills are those that agents get, and are asked for once', async () => {
  const skillEntries = vi.fn(() =>
    Promise.resolve({
      items: [
        { approved: true, skills: [skill('weather'), skill('broken', { problem: 'no name' })] },
        { approved: false, skills: [skill('wind')] },
      ],
      path: '',
    }),
  ) as unknown as Entries;
  const skills = new Skills({ skillEntries }, '/work');
  expect(await skills.matching('')).toEqual([
    expect.objectContaining({ name: 'weather', about: 'about weather' }),
  ]);
  expect(await skills.matching('wi')).toEqual([]);
  expect(skillEntries).toHaveBeenCalledTimes(2); // of the directory, and of all projects;
});

test('where skills cannot be read there are none', async () => {
  const skillEntries = (() => Promise.reject(new Error('gone'))) as unknown as Entries;
  expect(await new Skills({ skillEntries }, '/work').matching('')).toEqual([]);
  expect(await new Skills({ skillEntries }, undefined).matching('')).toEqual([]);
});
