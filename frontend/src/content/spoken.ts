const mark = '[[lilac.attachments]]';
const line = /^\[\[lilac\.attachments\]\]\{.*\}\[\[\/lilac\.attachments\]\]\s*$/;

/**
 * Splits a message into its text and the line by which an agent's tools find files that came with the message from a chat. That line is not
 * for people, who see the files below the message; without files the message stays whole.
 */
export function spoken(text: string, files: number): [text: string, block: string] {
  const at = files > 0 ? text.lastIndexOf(mark) : -1;
  const alone = at === 0 || (at > 0 && text.charAt(at - 1) === '\n');
  const block = alone ? text.slice(at) : '';
  return line.test(block) ? [text.slice(0, at).trimEnd(), block] : [text, ''];
}

/** Joins the two parts of a message again. */
export function rejoined(text: string, block: string): string {
  return block === '' || text === '' ? text + block : `${text}\n\n${block}`;
}
