const mark = '[[lilac.attachments]]';
const line = /^\[\[lilac\.attachments\]\]\{.*\}\[\[\/lilac\.attachments\]\]\s*$/;

/**
 * A message, and apart from it the line by which an agent's tools find the files that came with it from a chat. That is no text for people:
 * the files themselves stand below the message. Where they do not, nothing is taken out of sight.
 */
export function spoken(text: string, files: number): [text: string, block: string] {
  const at = files > 0 ? text.lastIndexOf(mark) : -1;
  const alone = at === 0 || (at > 0 && text.charAt(at - 1) === '\n');
  const block = alone ? text.slice(at) : '';
  return line.test(block) ? [text.slice(0, at).trimEnd(), block] : [text, ''];
}

/** Both of them as one message. */
export function rejoined(text: string, block: string): string {
  return block === '' || text === '' ? text + block : `${text}\n\n${block}`;
}
