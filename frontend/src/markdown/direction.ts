// Says which way a text goes. Blocks that go from right to left are told so by an attribute, so that markers, bars and columns stand on
// their side; a block without such letters, as most are, gets no attribute.

const rightToLeft =
  /[\u0590-\u05ff\u0600-\u08ff\ufb1d-\ufdff\ufe70-\ufefc\u{10800}-\u{10fff}\u{1e800}-\u{1efff}]/u;
/** What has a direction of its own within a text: code, addresses, tags. */
const apart = /(`+)[^`]+\1|\]\([^)\n]*\)|\bhttps?:\S+|<[^>\n]*>/g;
const letter = /\p{L}/u;
/** The first letter decides, which nearly always is among these characters. */
const near = 1_000;

/** Reports whether the first letter of a text that is no code belongs to a script from right to left. */
export function goesLeft(text: string): boolean {
  const head = text.slice(0, near);
  if (!rightToLeft.test(head)) return false;
  const first = letter.exec(head.replace(apart, ' '))?.[0];
  return first !== undefined && rightToLeft.test(first);
}
