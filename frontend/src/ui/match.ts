// Ranks the palette's entries for a query: every word must occur, and words at a beginning count more.

interface Candidate {
  text: string;
}

export function score(text: string, query: string): number {
  const low = text.toLowerCase();
  let total = 0;
  for (const word of query.toLowerCase().split(/\s+/)) {
    if (word === '') continue;
    const at = low.indexOf(word);
    if (at < 0) return 0;
    total += at === 0 ? 3 : /[\s/._-]/.test(low.charAt(at - 1)) ? 2 : 1;
  }
  return total || 1;
}

export function best<T extends Candidate>(all: readonly T[], query: string, most: number): T[] {
  return all
    .map((candidate, index) => ({ candidate, index, points: score(candidate.text, query) }))
    .filter((one) => one.points > 0)
    .sort((a, b) => b.points - a.points || a.index - b.index)
    .slice(0, most)
    .map((one) => one.candidate);
}
