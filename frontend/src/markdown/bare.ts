/**
 * Takes out what is no part of the diagram itself. Tags other than line breaks become the entities of diagrams: Mermaid would have the page
 * read them before it sanitizes them.
 */
export function bare(source: string): string {
  return source
    .replace(/^\s*---[ \t]*\n[^]*?\n[ \t]*---[ \t]*(?:\n|$)/, '')
    .replace(/%%\{[^]*?\}%%/g, '')
    .replace(/<(?!br\s*\/?>)(\/?[a-z!?][^<>]*)>/gi, (tag, inside: string, at: number, all: string) =>
      all[at - 1] === '<' ? tag : `#lt;${inside}#gt;`,
    )
    .trim();
}
