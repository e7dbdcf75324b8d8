import type { Exit } from '../api/records';
import { lookup, t } from '../strings/t';

/** Returns the text that says how an agent ended, or why it did not start. */
export function exitText(exit: Exit, agent: string): string {
  const params = { ...exit.params, agent, code: exit.code ?? '', signal: exit.signal ?? '' };
  const how = exit.signal ? 'signal' : exit.code === undefined ? undefined : 'code';
  const known = exit.problem === 'agent.exited' ? undefined : lookup(`exit.${exit.problem ?? ''}`, params);
  const told = withDetail(known, exit.params?.['detail']);
  if (!told)
    return (
      withDetail(how ? t(`exit.${how}`, params) : t('exit.unknown', params), exit.params?.['detail']) ?? ''
    );
  return how ? `${told} ${t(`exit.then_${how}`, params)}` : told;
}

/** Adds the agent's own words, for example about a used-up quota. */
function withDetail(known: string | undefined, detail: string | undefined): string | undefined {
  return known && detail && !known.includes(detail) ? `${known} ${detail}` : known;
}

const shownLines = 5;

/** Returns the last lines of the agent's error output. */
export function lastLines(text: string, count = shownLines): { text: string; more: boolean } {
  const lines = text.replace(/\s+$/, '').split('\n');
  return { text: lines.slice(-count).join('\n'), more: lines.length > count };
}
