import type { Finding } from '../api/records';
import { lookup, t } from '../strings/t';
import { bytes } from '../ui/format';
import '../strings/agents';

// What a verification found, in words.

/** What is told without anything being wrong. */
const notes: ReadonlySet<string> = new Set(['agent.offers', 'agent.unlisted', 'blob.unused', 'verify.more']);

/** What is made anew when the person says so; the rest has no other source. */
const mended: ReadonlySet<string> = new Set([
  'blob.unused',
  'entries.differ',
  'turns.differ',
  'requests.differ',
  'search.missing',
  'search.extra',
  'search.damaged',
]);

export function isNote(finding: Finding): boolean {
  return notes.has(finding.code);
}

export function canRepair(finding: Finding): boolean {
  return !finding.repaired && mended.has(finding.code) && !mustChoose(finding);
}

/** A transcript that the journal would change or cut: only the person knows which of the two is right. */
export function mustChoose(finding: Finding): boolean {
  const { different = '0', extra = '0' } = finding.params;
  const chosen = finding.code === 'entries.differ' || finding.code === 'turns.differ';
  return chosen && !finding.repaired && (different !== '0' || extra !== '0');
}

/** The sentence for a finding; one without words of ours is told by its code. Agents are called by their names. */
export function wordsOf(finding: Finding, nameOf: (agent: string) => string): string {
  const params = { ...finding.params };
  if (params['agent'] !== undefined) params['agent'] = nameOf(params['agent']);
  if (params['bytes'] !== undefined) params['bytes'] = bytes(Number(params['bytes']));
  return lookup(`finding.${finding.code}`, params) ?? t('finding.unknown', { code: finding.code });
}

/** Findings of one kind together: first what is wrong still, then what was repaired, then what is only told. */
export function groupsOf(findings: readonly Finding[]): Finding[][] {
  const groups = new Map<string, Finding[]>();
  for (const finding of findings) {
    const key = `${finding.code} ${finding.repaired}`;
    const group = groups.get(key);
    if (group) group.push(finding);
    else groups.set(key, [finding]);
  }
  const rank = (group: Finding[]) => {
    const [first] = group;
    if (!first) return 0;
    return isNote(first) ? 2 : first.repaired ? 1 : 0;
  };
  return [...groups.values()].sort((a, b) => rank(a) - rank(b));
}
