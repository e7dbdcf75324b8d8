import { lookup, t } from '../strings/t';

/** Returns the verb of a tool kind, which is shown before the target. */
export function verb(kind: string): string {
  return lookup(`verb.${kind}`) ?? t('verb.any');
}
