import { ApiError } from '../api/errors';
import type { Comparison, Exit, MemberResult, Session } from '../api/records';
import { lookup, t } from '../strings/t';
import { errorText } from '../ui/format';
import type { Status } from '../ui/glyph';
import { heldBy, statusOf } from '../ui/glyph';

// The state of a member in words.

interface MemberState {
  words: string;
  /** What the member does, or why it has failed. */
  detail?: string;
  status: Status;
}

/** Returns the text of a problem of a member, or of its files. */
export function problemText({
  problem = '',
  refused,
}: Pick<Comparison['members'][number], 'problem' | 'refused'>): string {
  return refused ? errorText(new ApiError(refused.code, refused.params, 409, problem)) : problem;
}

const failures = ['error', 'agent_exited', 'refusal'];

/** Returns the state of a member that has begun. */
export function stateOf(
  session: Session,
  result: Pick<MemberResult, 'stopReason' | 'error' | 'turns'>,
): MemberState {
  const status = statusOf(session);
  const { setup, phase } = session;
  const held = heldBy(session);
  if (held) return { words: t(`held.${held}`), ...(setup?.problem ? { detail: setup.problem } : {}), status };
  if (status === 'waiting') return { words: t('compare.state.waiting'), status };
  if (setup?.waiting) return { words: t('compare.state.setting_up'), status: 'running' };
  switch (phase) {
    case 'starting':
    case 'replaying':
      return { words: t('compare.state.starting'), status };
    case 'cancelling':
      return { words: t('compare.state.stopping'), status };
    case 'working':
      return { words: t('compare.state.works'), ...(session.doing ? { detail: session.doing } : {}), status };
  }
  if (session.queue > 0) return { words: t('compare.state.queued'), status: 'queued' };
  return ended(session, result);
}

/** Returns the text that says how an agent ended, or why it did not start. */
function exitText({ problem, params, code, signal }: Exit, agent: string): string | undefined {
  const known =
    problem === 'agent.exited' ? undefined : lookup(`exit.${problem ?? ''}`, { ...params, agent });
  if (known) return known;
  if (signal) return t('exit.signal', { agent, signal });
  return code === undefined ? undefined : t('exit.code', { agent, code });
}

function ended(
  { exit, agentName }: Session,
  { stopReason, error, turns }: Pick<MemberResult, 'stopReason' | 'error' | 'turns'>,
): MemberState {
  const why =
    (exit && exitText(exit, agentName)) ??
    error?.message ??
    (stopReason && lookup(`stop.${stopReason}`, { agent: agentName }));
  const detail = why ? { detail: why } : {};
  if (stopReason && failures.includes(stopReason))
    return { words: t('compare.state.failed'), ...detail, status: 'failed' };
  if (turns === 0 && exit) return { words: t('compare.state.failed'), ...detail, status: 'failed' };
  if (turns === 0) return { words: t('compare.state.none'), status: 'idle' };
  if (stopReason && stopReason !== 'end_turn')
    return { words: t('compare.state.stopped'), ...detail, status: 'idle' };
  return { words: t('compare.state.done'), status: 'idle' };
}
