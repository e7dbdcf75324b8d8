import type { AgentSize, InstallPlan } from '../api/records';
import { t } from '../strings/t';
import { bytes } from '../ui/format';
import '../strings/screens';

// What an installation takes, told before it begins.

/** From this size on a person is asked first: it takes minutes on a slow line. */
export const bigFrom = 200 * 1024 * 1024;

export type Decision = 'go' | 'ask' | 'refuse';

/** What an installation needs of the person before it begins. */
export function decide(plan: InstallPlan): Decision {
  if (!plan.enough) return 'refuse';
  return (plan.unpacked ?? plan.download ?? 0) > bigFrom ? 'ask' : 'go';
}

/** How much is fetched and how much it takes on the disk, as far as anybody knows. */
export function sizeText(size: Pick<AgentSize, 'download' | 'unpacked'> | undefined): string {
  const { download = 0, unpacked = 0 } = size ?? {};
  if (download > 0 && unpacked > 0)
    return t('agents.size.both', { download: bytes(download), unpacked: bytes(unpacked) });
  if (unpacked > 0) return t('agents.size.unpacked', { unpacked: bytes(unpacked) });
  return download > 0 ? t('agents.size.download', { download: bytes(download) }) : '';
}

/** What a person reads when they are asked, or refused. */
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
  return plan.freeBytes > 0 ? `${question} ${t('agents.plan.free', params)}` : question; // 0: nobody knows
}
