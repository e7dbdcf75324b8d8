// A run of empty lines pushes the following text out of view. Where a person decides on the text, such a run is folded, and its length is
// shown.

type Piece = { text: string } | { empty: number };

const fewest = 3;

/** Splits a text at runs of blank lines. */
export function foldBlank(text: string): Piece[] {
  const pieces: Piece[] = [];
  let lines: string[] = [];
  let empty: string[] = [];

  function endRun(): void {
    if (empty.length < fewest) lines.push(...empty);
    else {
      if (lines.length > 0) pieces.push({ text: lines.join('\n') });
      pieces.push({ empty: empty.length });
      lines = [];
    }
    empty = [];
  }

  for (const line of text.split('\n')) {
    if (line.trim() === '') empty.push(line);
    else {
      endRun();
      lines.push(line);
    }
  }
  endRun();
  if (lines.length > 0) pieces.push({ text: lines.join('\n') });
  return pieces;
}
