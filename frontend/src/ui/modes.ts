import { t } from '../strings/t';

/** The backend's verdict whether an agent asks a person in a mode; see backend/startmode. */
type Asks = 'asks' | 'decides' | 'settings' | 'unknown';

/** Returns the remark about a mode in which the agent may not ask; empty for a mode that asks. */
export function asksText(asks: Asks): string {
  return asks === 'asks' ? '' : t(`startmode.${asks}`);
}

interface Choice {
  value: string;
  name: string;
  description?: string;
}

/** Returns the choices of modes, with a mark on those in which the agent may not ask. */
export function marked<C extends Choice>(
  choices: readonly C[],
  asks: (value: string) => Asks | undefined,
): (C & { mark?: string })[] {
  return choices.map((choice) => {
    const mark = asksText(asks(choice.value) ?? 'asks');
    return mark ? { ...choice, mark } : choice;
  });
}
