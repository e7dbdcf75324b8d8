import { t } from '../strings/t';

/** Whether an agent asks a person in one of its modes, as startmode of the backend judges. */
export type Asks = 'asks' | 'decides' | 'settings' | 'unknown';

/** What people are told of a mode in which nobody is asked for sure; nothing of one that asks. */
export function asksText(asks: Asks): string {
  return asks === 'asks' ? '' : t(`startmode.${asks}`);
}

interface Choice {
  value: string;
  name: string;
  description?: string;
}

/** The choices of modes, those that do not ask for sure with a mark. */
export function marked<C extends Choice>(
  choices: readonly C[],
  asks: (value: string) => Asks | undefined,
): (C & { mark?: string })[] {
  return choices.map((choice) => {
    const mark = asksText(asks(choice.value) ?? 'asks');
    return mark ? { ...choice, mark } : choice;
  });
}
