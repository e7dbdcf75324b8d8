// Brings elements up to date with HTML, and leaves those that stay as they are. What streams in is one paragraph longer by a few words,
// twenty times a second: put there anew it would be laid out anew from its first line, and an engine keeps what it needed to draw the
// one before until it collects its garbage. A selection in it stays, too.

const template = document.createElement('template');

/** The HTML has been through the sanitizer. */
export function patch(element: Element, html: string): void {
  template.innerHTML = html;
  children(element, template.content);
}

function children(old: ParentNode & Node, now: ParentNode & Node): void {
  let at = old.firstChild;
  let next = now.firstChild;
  while (next) {
    const after: ChildNode | null = at?.nextSibling ?? null;
    const following: ChildNode | null = next.nextSibling;
    if (!at) old.append(next);
    else if (!alike(at, next)) at.replaceWith(next);
    at = after;
    next = following;
  }
  while (at) {
    const after: ChildNode | null = at.nextSibling;
    at.remove();
    at = after;
  }
}

/** Where a text stays as it is it is not laid out again, and what is selected there stays so. */
export function say(old: Text, now: string): void {
  const was = old.data;
  let same = now.startsWith(was) ? was.length : 0;
  while (same < was.length && was.charCodeAt(same) === now.charCodeAt(same)) same++;
  if (same < Math.max(was.length, now.length)) old.replaceData(same, was.length - same, now.slice(same));
}

/** Makes the one what the other is, unless it is of another kind. */
function alike(old: ChildNode, now: ChildNode): boolean {
  if (old.isEqualNode(now)) return true;
  if (old instanceof Text && now instanceof Text) {
    say(old, now.data);
    return true;
  }
  // A link whose address has grown is another link.
  if (!(old instanceof Element && now instanceof Element) || !old.cloneNode().isEqualNode(now.cloneNode()))
    return false;
  children(old, now);
  return true;
}
