import { expect, test } from 'vitest';
import { rejoined, spoken } from './spoken';

const block = '[[lilac.attachments]]{"items":[{"url":"https://cdn.example/a.png"}]}[[/lilac.attachments]]';

test('the line of the files is taken out of sight, and stands on a line of its own again', () => {
  for (const between of ['\n', '\n\n', '\r\n']) {
    expect(spoken(`Look at this${between}${block}\n`, 1)).toEqual(['Look at this', `${block}\n`]);
  }
  expect(spoken(block, 1)).toEqual(['', block]);
  expect(spoken(rejoined('Look', block), 1)).toEqual(['Look', block]);
  expect(rejoined('', block)).toBe(block);
  expect(rejoined('Look', '')).toBe('Look');
});

test('what is not that line, or has no files to stand for it, stays', () => {
  for (const text of [
    'Look at this',
    `${block}\nand more`,
    `Look ${block}`,
    'Look\n[[lilac.attachments]][[/lilac.attachments]]',
    `Look\n${block} not the end`,
  ])
    expect(spoken(text, 1)).toEqual([text, '']);
  expect(spoken(`Look\n${block}`, 0)).toEqual([`Look\n${block}`, '']);
});
