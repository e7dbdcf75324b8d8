import { expect, test } from 'vitest';
import '../strings/attachments';
import type { Attachment } from '../api/records';
import { measureOf, notesOf } from './words';

const file: Attachment = { id: 'a1', filename: 'a', mimeType: 'text/plain', size: 2048 };

test('what stands beside a name', () => {
  expect(measureOf(file)).toBe('2 KB');
  expect(measureOf({ directory: true, size: 4096 })).toBe('Directory');
});

test.each([
  [{}, []],
  [{ copied: true }, [['muted', /A copy goes to \.deskhand\/attachments .* Claude can read it/]]],
  [{ warning: 'copied', copied: true }, [['muted', /A copy goes/]]],
  [
    { warning: 'no_image', copied: true },
    [
      ['warn', /Claude does not accept pictures/],
      ['muted', /A copy goes/],
    ],
  ],
  [{ warning: 'downscaled' }, [['muted', /Scaled down/]]],
  [{ warning: 'demoted' }, [['warn', /Claude gets a link/]]],
  [{ warning: 'of_tomorrow' }, [['warn', /may not reach Claude as it is \(of_tomorrow\)/]]],
  [{ missing: true }, [['warn', /not where it was/]]],
] as [Partial<Attachment>, [string, RegExp][]][])('%j', (part, notes) => {
  const said = notesOf({ ...file, ...part }, 'Claude');
  expect(said.map((note) => note.tone)).toEqual(notes.map(([tone]) => tone));
  said.forEach((note, at) => expect(note.text).toMatch(notes[at]?.[1] ?? /^$/));
});
