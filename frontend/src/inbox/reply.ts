import type { Question } from '../api/records';
import { isObject } from '../content/blocks';

// The chosen answers to the questions of a request: for each a list of option ids and the free text.

export interface Picked {
  ids: string[];
  /** The free text; undefined while that choice is not selected. */
  other: string | undefined;
  /** The free text while another choice is selected. This text is not sent; it returns when the person selects the free text again. */
  own?: string;
}

/** Returns the text to show in the free-text field when that choice is selected. */
export function ownWords(picked: Picked): string {
  return picked.other ?? picked.own ?? '';
}

function setAside(words: string): Pick<Picked, 'other' | 'own'> {
  return words === '' ? { other: undefined } : { other: undefined, own: words };
}

/** Returns the stored answers where they fit the questions. */
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

/** Selects an option. Where several may be chosen, a second call removes the option. */
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

/** Returns the answers, or the index of the first question without an answer. */
export function answers(
  picked: readonly Picked[],
): { ok: true; answers: string[][] } | { ok: false; missing: number } {
  const lists = picked.map(({ ids, other }) => [...ids, ...(other?.trim() ? [other.trim()] : [])]);
  const missing = lists.findIndex((list) => list.length === 0);
  return missing < 0 ? { ok: true, answers: lists } : { ok: false, missing };
}
