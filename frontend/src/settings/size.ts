import type { AgentSize, InstallPlan } from '../api/records';
import { t } from '../strings/t';
import { bytes } from '../ui/format';
import '../strings/screens';

// The size of an installation, shown before it begins.

/** Larger installations need a confirmation, because they take minutes on a slow connection. */
export const bigFrom = 200 * 1024 * 1024;

export type Decision = 'go' | 'ask' | 'refuse';

/** Decides whether an installation may begin, needs a confirmation, or lacks space. */
export function decide(plan: InstallPlan): Decision {
  if (!plan.enough) return 'refuse';
  return (plan.unpacked ?? plan.download ?? 0) > bigFrom ? 'ask' : 'go';
}

/** Returns the sizes of the download and on the disk, as far as known. */
export function sizeText(size: Pick<AgentSize, 'download' | 'unpacked'> | undefined): string {
  const { download = 0, unpacked = 0 } = size ?? {};
  if (download > 0 && unpacked > 0)
    return t('agents.size.both', { download: bytes(download), unpacked: bytes(unpacked) });
  if (unpacked > 0) return t('agents.size.unpacked', { unpacked: bytes(unpacked) });
  return download > 0 ? t('agents.size.download', { download: bytes(download) }) : '';
}

/** Returns the question or refusal. */
export function planText(plan: InstallPlan, agent: string): string {
  const params = {
    agent,
    version: plan.version,
    size: sizeText(plan),
    need: bytes(plan.unpacked ?? plan.download ?? 0),
    free: bytes(plan.freeBytes),
  };
  if (!plan.enough) return t('agents.plan.no_room', params);
  const question = t('agents.plan.ask', params);
  return plan.freeBytes > 0 ? `${question} ${t('agents.plan.free', params)}` : question; // 0 means unknown
}
