import type { Login, LoginMethod, LoginVar } from '../api/records';
import { lookup, t } from '../strings/t';

// Derives the stage of the login dialog.

type Stage =
  | { name: 'choose' }
  /** The fields of a method that needs values. */
  | { name: 'fields'; method: LoginMethod }
  | { name: 'running'; login: Login }
  | { name: 'done'; login: Login }
  | { name: 'failed'; login: Login };

/**
 * Returns the stage of the dialog. A running or ended login wins over the chosen method. A login that the person cancelled is no failure:
 * the dialog returns to the method's fields, or to the choice.
 */
export function stageOf(login: Login | undefined, method: LoginMethod | undefined): Stage {
  if (login && login.code !== 'login.cancelled') return { name: login.state, login };
  return method ? { name: 'fields', method } : { name: 'choose' };
}

/** Reports whether a method asks for values before it begins. */
export function asks(method: LoginMethod): boolean {
  return (method.vars?.length ?? 0) > 0;
}

/** Returns the newer record of a login. A late answer that says "running" does not replace the end. */
export function newest(before: Login | undefined, now: Login): Login {
  return before?.id === now.id && before.state !== 'running' && now.state === 'running' ? before : now;
}

export function labelOf(one: LoginVar): string {
  return one.label || (lookup(`login.var.${one.name}`) ?? one.name);
}

/** Returns the required variables without a value. A variable that is set may stay empty. */
export function missing(vars: readonly LoginVar[], values: Readonly<Record<string, string>>): LoginVar[] {
  return vars.filter((one) => !one.optional && !one.set && !values[one.name]?.trim());
}

/** Returns the typed values. An empty field changes nothing. */
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

/** Returns the reason of a failed login: the agent's text, otherwise the text of the code. */
export function failureText(login: Login, agent: string): string {
  const { code = '', detail } = login;
  const known = lookup(`login.fault.${code.replace(/^login\./, '')}`, { agent, detail: detail ?? '' });
  if (!known || code === 'login.failed') return detail || t('login.fault.failed', { agent });
  return known;
}
