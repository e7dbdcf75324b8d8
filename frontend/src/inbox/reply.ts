import type { Question } from '../api/records';
import { isObject } from '../content/blocks';

// What was chosen of the questions of one request, as the answer wants it: a list of chosen ids, or the free text, for each.

export interface Picked {
  ids: string[];
  /** The person's own words; undefined while that choice is not taken. */
  other: string | undefined;
  /** Those words while another choice is taken: they are not sent, and there again when somebody comes back to them. */
  own?: string;
}

/** What stands in the field for one's own words when that choice is taken. */
export function ownWords(picked: Picked): string {
  return picked.other ?? picked.own ?? '';
}

function setAside(words: string): Pick<Picked, 'other' | 'own'> {
  return words === '' ? { other: undefined } : { other: undefined, own: words };
}

/** What to begin with: what was kept, where it fits the questions. */
export function restored(questions: readonly Question[], kept: unknown): Picked[] {
  const list = Array.isArray(kept) ? kept : [];
  return questions.map((question, index) => {
    const held: unknown = list[index];
    if (!isObject(held)) return { ids: [], other: undefined };
    const ids: unknown[] = Array.isArray(held['ids']) ? held['ids'] : [];
    const known = question.options.map((option) => option.id).filter((id) => ids.includes(id));
    const words = (key: string) =>
      question.allowFreeText && typeof held[key] === 'string' ? held[key] : undefined;
    const other = words('other');
    return {
      ids: question.multiSelect ? known : known.slice(0, other === undefined ? 1 : 0),
      ...(other === undefined ? setAside(words('own') ?? '') : { other }),
    };
  });
}

/** With one choice a new one takes the place of the old; with several it is added or taken away. */
export function pick(question: Question, picked: Picked, id: string): Picked {
  if (!question.multiSelect) return { ids: [id], ...setAside(ownWords(picked)) };
  const ids = picked.ids.includes(id) ? picked.ids.filter((one) => one !== id) : [...picked.ids, id];
  // In the order of the options, not of the clicks.
  const order = question.options.map((option) => option.id);
  return { ...picked, ids: order.filter((one) => ids.includes(one)) };
}

export function pickOther(question: Question, picked: Picked, text: string | undefined): Picked {
  if (text === undefined) return { ids: picked.ids, ...setAside(ownWords(picked)) };
  return { ids: question.multiSelect ? picked.ids : [], other: text };
}

/** The answers, or the index of the first question that has none. */
export function answers(
  picked: readonly Picked[],
): { ok: true; answers: string[][] } | { ok: false; missing: number } {
  const lists = picked.map(({ ids, other }) => [...ids, ...(other?.trim() ? [other.trim()] : [])]);
  const missing = lists.findIndex((list) => list.length === 0);
  return missing < 0 ? { ok: true, answers: lists } : { ok: false, missing };
}
