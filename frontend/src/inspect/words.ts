import { t } from '../strings/t';
import { bytes } from '../ui/format';
import type { Frame } from '../api/records';

/** Formats a time of day with the precision that the value has. */
export function clock(at: string): string {
  const date = new Date(at);
  const two = (value: number) => String(value).padStart(2, '0');
  const time = [date.getHours(), date.getMinutes(), date.getSeconds()].map(two).join(':');
  return `${time}.${String(date.getMilliseconds()).padStart(3, '0')}`;
}

/** Returns the description of a row's signs for screen readers. */
export function wordsOf(frame: Frame): string {
  const way = frame.dir === 'note' ? '' : t(frame.dir === 'in' ? 'inspect.from' : 'inspect.to');
  const kind = frame.method ? t(`inspect.kind.${frame.kind}`) : '';
  return [way, kind, frame.failed ? t('inspect.failed') : '', frame.damaged ? t('inspect.damaged') : '']
    .filter(Boolean)
    .join(', ');
}

/** The largest number of characters that the page shows. A longer text slows the page long before anybody has read it. */
const shownAtMost = 200_000;

/** Formats a message: JSON gets line breaks, other text stays. */
export function readable(text: string): { text: string; whole: string; cut: string | undefined } {
  let whole = text;
  try {
    const value: unknown = JSON.parse(text);
    whole = typeof value === 'string' ? value : JSON.stringify(value, null, 2);
  } catch {
    // Not JSON: the text is shown unchanged.
  }
  if (whole.length <= shownAtMost) return { text: whole, whole, cut: undefined };
  return {
    text: whole.slice(0, shownAtMost),
    whole,
    cut: t('inspect.long', { shown: bytes(shownAtMost), size: bytes(whole.length) }),
  };
}
