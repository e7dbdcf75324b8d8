import type { Exit } from '../api/records';
import { lookup, t } from '../strings/t';

/** How an agent ended, or why it did not start, in words. */
export function exitText(exit: Exit, agent: string): string {
  const params = { ...exit.params, agent, code: exit.code ?? '', signal: exit.signal ?? '' };
  const how = exit.signal ? 'signal' : exit.code === undefined ? undefined : 'code';
  const told = exit.problem === 'agent.exited' ? undefined : lookup(`exit.${exit.problem ?? ''}`, params);
  if (!told) return how ? t(`exit.${how}`, params) : t('exit.unknown', params);
  return how ? `${told} ${t(`exit.then_${how}`, params)}` : told;
}

export const shownLines = 5;

/** The last lines of what the agent wrote to stderr. */
export function lastLines(text: string, count = shownLines): { text: string; more: boolean } {
  const lines = text.replace(/\s+$/, '').split('\n');
  return { text: lines.slice(-count).join('\n'), more: lines.length > count };
}
