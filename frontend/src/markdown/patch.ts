// Updates elements to match HTML, and keeps unchanged elements. A streamed paragraph grows by a few words twenty times a second. Replacing
// it would lay it out from its first line, and the engine would keep the old paragraph until its next garbage collection. A selection in
// the paragraph stays too.

const template = document.createElement('template');

/** Updates the children of an element. html must be sanitized. */
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

/** Replaces only the changed end of a text, so that the rest keeps its layout and selection. */
export function say(old: Text, now: string): void {
  const was = old.data;
  let same = now.startsWith(was) ? was.length : 0;
  while (same < was.length && was.charCodeAt(same) === now.charCodeAt(same)) same++;
  if (same < Math.max(was.length, now.length)) old.replaceData(same, was.length - same, now.slice(same));
}

/** Updates a node to match another. It returns false when the nodes are of different kinds. */
function alike(old: ChildNode, now: ChildNode): boolean {
  if (old.isEqualNode(now)) return true;
  if (old instanceof Text && now instanceof Text) {
    say(old, now.data);
    return true;
  }
  // A link with another address is another link.
  if (!(old instanceof Element && now instanceof Element) || !old.cloneNode().isEqualNode(now.cloneNode()))
    return false;
  children(old, now);
  return true;
}
