import { plain } from '../content/output';
import type { Agent, TestReport } from '../api/records';
import { lookup, t } from '../strings/t';
import { millis } from '../ui/format';
import '../strings/agents';

// The report of an agent's test, for people to read and pass on.

const testSteps = ['resolve', 'spawn', 'initialize', 'session'] as const;

export interface Step {
  step: string;
  /** Steps after a failed step are unreached. */
  state: 'ok' | 'failed' | 'unreached';
  ms: number;
  detail: string;
}

/** Returns all steps of a start, including unreached steps. */
export function stepsOf(report: TestReport): Step[] {
  const seen = report.steps.map((step): Step => {
    return { step: step.step, state: step.ok ? 'ok' : 'failed', ms: step.ms, detail: step.detail ?? '' };
  });
  const names = new Set(seen.map((step) => step.step));
  const rest = testSteps.filter((step) => !names.has(step));
  return [...seen, ...rest.map((step): Step => ({ step, state: 'unreached', ms: 0, detail: '' }))];
}

type Verdict = 'ready' | 'needs_login' | 'failed';

export function verdictOf(report: TestReport): Verdict {
  if (report.agent.state === 'needs_login') return 'needs_login';
  const steps = stepsOf(report);
  return steps.every((step) => step.state === 'ok') ? 'ready' : 'failed';
}

interface Capability {
  group: string;
  members: string[];
}

/** Returns the agent's capabilities in the agent's words: the members of groups that are not false. */
export function capabilitiesOf(raw: unknown): Capability[] {
  if (!isObject(raw)) return [];
  const single: string[] = [];
  const groups: Capability[] = [];
  for (const [key, value] of Object.entries(raw)) {
    if (key === '_meta' || value === false || value === null) continue;
    if (!isObject(value)) {
      single.push(words(key));
      continue;
    }
    const members = Object.entries(value)
      .filter(([name, one]) => name !== '_meta' && one !== false && one !== null)
      .map(([name]) => words(name));
    if (members.length > 0) groups.push({ group: words(key.replace(/Capabilities$/, '')), members });
    else if (!/Capabilities$/.test(key)) single.push(words(key));
  }
  return single.length > 0 ? [{ group: '', members: single }, ...groups] : groups;
}

/** Splits a camel-case name into words. */
function words(name: string): string {
  return name.replace(/([a-z0-9])([A-Z])/g, (_, a: string, b: string) => `${a} ${b.toLowerCase()}`);
}

function isObject(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

/** Returns the advice in words. An unknown code is shown as it is. */
export function adviceOf(report: TestReport): string[] {
  return (report.advice ?? []).map(
    ({ code, params }) =>
      lookup(`advice.${code}`, { agent: report.agent.name, ...params }) ?? t('advice.unknown', { code }),
  );
}

/** Returns how the agent's process ended, if it ended by itself. */
export function endOf(report: TestReport): string {
  if (report.signal) return t('exit.signal', { agent: report.agent.name, signal: report.signal });
  if (report.exitCode === undefined) return '';
  return t('exit.code', { agent: report.agent.name, code: report.exitCode });
}

/** Returns the origin of an agent when the server gave no reason. */
export function sourceOf(agent: Agent): string {
  if (agent.source === 'builtin') return t('agent.builtin');
  return agent.source === 'custom' ? t('agent.custom') : '';
}

interface Surrounding {
  name: string;
  values: string[];
}

/** Returns the programs and variables that the agent was started with. */
export function surroundingsOf({ env }: TestReport): Surrounding[] {
  const all = [
    { name: 'node', values: env.node ? [env.node] : [] },
    { name: 'npm', values: env.npm ? [env.npm] : [] },
    { name: 'PATH', values: env.path },
  ];
  return all.filter(({ values }) => values.length > 0);
}

/** Returns the whole report as text, for an issue or a colleague. */
export function reportText(report: TestReport, version: string): string {
  const { agent } = report;
  const lines: string[] = [`${agent.name} (${agent.id}): ${t(`test.${verdictOf(report)}`)}`];
  const add = (label: string, value: string | number | undefined) => {
    if (value !== undefined && value !== '') lines.push(`${label}: ${value}`);
  };
  add(t('report.deskhand'), version);
  add(t('report.program'), agent.path);
  add(t('report.reason'), agent.reason ?? sourceOf(agent));
  add(t('report.version'), agent.version);
  lines.push('');
  for (const { step, state, ms, detail } of stepsOf(report)) {
    const time = state === 'unreached' ? '' : `, ${millis(ms)}`;
    lines.push(`- ${step}: ${t(`test.step.${state}`)}${time}${detail ? `: ${detail}` : ''}`);
  }
  const end = endOf(report);
  if (end) lines.push(`- ${end}`);
  lines.push('');
  for (const advice of adviceOf(report)) lines.push(`${t('report.advice')}: ${advice}`);
  const info = report.agentInfo;
  if (info) add(t('report.calls_itself'), `${info.title || info.name} ${info.version}`.trim());
  add(t('report.protocol'), report.protocolVersion);
  const methods = (report.authMethods ?? []).map((method) => `${method.name} (${method.id})`);
  add(t('report.login'), methods.join(', '));
  if (report.capabilities !== undefined) add(t('report.capabilities'), JSON.stringify(report.capabilities));
  for (const { name, values } of surroundingsOf(report)) add(name, values.join(', '));
  const stderr = plain(report.stderr ?? '').trimEnd();
  if (stderr) lines.push('', `${t('report.stderr')}:`, stderr);
  return `${lines.join('\n').replace(/\n{3,}/g, '\n\n')}\n`;
}
