import type { Login, LoginMethod, LoginVar } from '../api/records';
import { lookup, t } from '../strings/t';

// What the login dialog shows, from what is known.

export type Stage =
  | { name: 'choose' }
  /** The fields of a method that needs values. */
  | { name: 'fields'; method: LoginMethod }
  | { name: 'running'; login: Login }
  | { name: 'done'; login: Login }
  | { name: 'failed'; login: Login };

/**
 * What is shown: a login that goes on, or has ended, before anything else; then the fields of the method that was chosen. One that
 * the person has cancelled is no failure: they choose again.
 */
export function stageOf(login: Login | undefined, method: LoginMethod | undefined): Stage {
  if (login && login.code !== 'login.cancelled') return { name: login.state, login };
  return method ? { name: 'fields', method } : { name: 'choose' };
}

/** Whether a method asks for something before it begins. */
export function asks(method: LoginMethod): boolean {
  return (method.vars?.length ?? 0) > 0;
}

/** The newest record of the login that this dialog follows; an answer that comes late does not undo its end. */
export function newest(before: Login | undefined, now: Login): Login {
  return before?.id === now.id && before.state !== 'running' && now.state === 'running' ? before : now;
}

/** What a variable is called beside its field. */
export function labelOf(one: LoginVar): string {
  return one.label || (lookup(`login.var.${one.name}`) ?? one.name);
}

/** The variables that have no value yet and need one. One that is set may stay as it is. */
export function missing(vars: readonly LoginVar[], values: Readonly<Record<string, string>>): LoginVar[] {
  return vars.filter((one) => !one.optional && !one.set && !values[one.name]?.trim());
}

/** The values that were entered. An empty field changes nothing. */
export function entered(
  vars: readonly LoginVar[],
  values: Readonly<Record<string, string>>,
): Record<string, string> {
  return Object.fromEntries(
    vars.flatMap(({ name }) => {
      const value = values[name]?.trim();
      return value ? [[name, value]] : [];
    }),
  );
}

/** Why a login failed: what the agent said, else the words for its code. */
export function failureText(login: Login, agent: string): string {
  const { code = '', detail } = login;
  const known = lookup(`login.fault.${code.replace(/^login\./, '')}`, { agent, detail: detail ?? '' });
  if (!known || code === 'login.failed') return detail || t('login.fault.failed', { agent });
  return known;
}
