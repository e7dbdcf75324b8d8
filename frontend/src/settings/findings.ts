import type { Finding } from '../api/records';
import { lookup, t } from '../strings/t';
import { bytes } from '../ui/format';
import '../strings/agents';

// The findings of a verification in words.

/** Findings that are information only. */
const notes: ReadonlySet<string> = new Set(['agent.offers', 'agent.unlisted', 'blob.unused', 'verify.more']);

/** Findings that a repair mends by making data again. Other data has no second source. */
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

/** Reports whether a person must choose a side, because the journal would change or cut the transcript. */
export function mustChoose(finding: Finding): boolean {
  const { different = '0', extra = '0' } = finding.params;
  const chosen = finding.code === 'entries.differ' || finding.code === 'turns.differ';
  return chosen && !finding.repaired && (different !== '0' || extra !== '0');
}

/** Returns the sentence of a finding; an unknown code is shown as it is. Agents appear by name. */
export function wordsOf(finding: Finding, nameOf: (agent: string) => string): string {
  const params = { ...finding.params };
  if (params['agent'] !== undefined) params['agent'] = nameOf(params['agent']);
  if (params['bytes'] !== undefined) params['bytes'] = bytes(Number(params['bytes']));
  return lookup(`finding.${finding.code}`, params) ?? t('finding.unknown', { code: finding.code });
}

/** Groups findings by kind: unrepaired first, then repaired, then information. */
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
