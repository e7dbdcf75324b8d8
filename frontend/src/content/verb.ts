import { lookup, t } from '../strings/t';

/** The verb of a tool kind, as it stands before its target. */
export function verb(kind: string): string {
  return lookup(`verb.${kind}`) ?? t('verb.any');
}
