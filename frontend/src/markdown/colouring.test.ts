import { beforeEach, expect, test, vi } from 'vitest';
import { Colouring, type Pages } from './colouring';
import type { Line } from './highlight';

let frames: (() => void)[];
/** Asked for, with the function that answers. */
let asked: { code: string; whole: boolean; answer: (lines: readonly Line[] | undefined) => void }[];
let closed: number;

beforeEach(() => {
  frames = [];
  asked = [];
  closed = 0;
  vi.stubGlobal('requestAnimationFrame', (call: () => void) => frames.push(call));
});

const ask = (whole: boolean) => (code: string) =>
  new Promise<readonly Line[] | undefined>((answer) => asked.push({ code, whole, answer }));
const painter = {
  paint: ask(true),
  stream: () => ({ next: ask(false), close: () => void closed++ }),
};
const coloured = (code: string): Line[] => code.split('\n').map((line) => [['tok-keyword', line]]);
const answer = async (lines?: readonly Line[]) => {
  const last = asked.at(-1);
  last?.answer(lines ?? coloured(last.code));
  await Promise.resolve();
};
const frame = () => frames.splice(0).forEach((call) => call());

function started() {
  const told: Pages[] = [];
  const made = new Colouring(painter, 'go', (pages) => told.push(pages));
  const shown = () => (told.at(-1) ?? []).flat().map((line) => line[0]?.[1]);
  return { made, told, shown };
}

test('a block that grows is coloured line by line, each line once, and the unfinished line is plain', async () => {
  const { made, shown } = started();
  made.say('one', false);
  expect(asked).toHaveLength(0);
  made.say('one\ntwo\nth', false);
  expect(asked.map(({ code }) => code)).toEqual(['one\ntwo']);
  made.say('one\ntwo\nthree\nfo', false);
  made.say('one\ntwo\nthree\nfour\nfi', false);
  expect(asked).toHaveLength(1); // one question at a time
  await answer();
  expect(shown()).toEqual(['one', 'two']);
  expect(asked.at(-1)?.code).toBe('three\nfour');
  await answer();
  frame();
  expect(shown()).toEqual(['one', 'two', 'three', 'four']);
  made.say('one\ntwo\nthree\nfour\nfive', true);
  expect(asked.at(-1)).toMatchObject({ code: 'five', whole: false });
  await answer();
  frame();
  frame();
  expect(shown()).toEqual(['one', 'two', 'three', 'four', 'five']);
  made.close();
  expect(closed).toBe(1);
});

test('a text that does not go on where it was begins again', async () => {
  const { made, shown } = started();
  made.say('one\ntwo\n', false);
  await answer();
  expect(shown()).toEqual(['one', 'two']);
  made.say('other\ntwo\n', false);
  expect(shown()).toEqual([]);
  expect([asked.at(-1)?.code, closed]).toEqual(['other\ntwo', 1]);
});

test('a finished block is coloured as a whole, one page in a frame', async () => {
  const { made, told, shown } = started();
  const code = Array.from({ length: 90 }, (_, n) => `line ${n}`).join('\n');
  made.say(code, true);
  expect(asked).toMatchObject([{ code, whole: true }]);
  await answer();
  expect(shown()).toHaveLength(40);
  frame();
  frame();
  expect(shown()).toHaveLength(90);
  expect(told.at(-1)?.[0]).toBe(told.at(-2)?.[0]); // an unchanged page is not drawn again
});

test('a language without a grammar is asked for once', async () => {
  const { made, told } = started();
  made.say('one\n', false);
  asked.at(-1)?.answer(undefined);
  await Promise.resolve();
  made.say('one\ntwo\n', false);
  made.say('one\ntwo\n', true);
  expect(asked).toHaveLength(1);
  expect(told).toEqual([]);
});
