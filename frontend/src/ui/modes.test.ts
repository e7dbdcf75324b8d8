import { expect, test } from 'vitest';
import { asksText, marked } from './modes';

test('a mode in which nobody is asked has a mark, and one that asks has none', () => {
  const modes = [
    { value: 'default', name: 'Manual' },
    { value: 'auto', name: 'Auto', description: 'Claude decides' },
    { value: 'build', name: 'Build' },
    { value: 'fresh', name: 'Fresh' },
  ];
  const judged = { default: 'asks', auto: 'decides', build: 'settings' } as const;
  const got = marked(modes, (value) => judged[value as keyof typeof judged] ?? 'unknown');
  expect(got.map((one) => one.mark)).toEqual([
    undefined,
    'Decides by itself: nobody is asked',
    'Asks as its own settings say',
    'Not known to ask',
  ]);
  expect(got[1]?.description).toBe('Claude decides');
  expect(asksText('asks')).toBe('');
});
