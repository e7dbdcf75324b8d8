import type { Action } from '../state/overlay.svelte';
import { store } from '../ui/storage';

// Stores the actions that were chosen last; the palette lists them first.

const key = 'deskhand.palette';
const most = 5;

function last(): string[] {
  try {
    const kept: unknown = JSON.parse(localStorage.getItem(key) ?? '[]');
    return Array.isArray(kept) ? kept.filter((one) => typeof one === 'string') : [];
  } catch {
    return [];
  }
}

export function uses(id: string): void {
  store(key, JSON.stringify([id, ...last().filter((one) => one !== id)].slice(0, most)));
}

/** Returns all actions, the last used first. */
export function used(all: readonly Action[]): Action[] {
  const first = last().flatMap((id) => all.find((one) => one.id === id) ?? []);
  return [...first, ...all.filter((one) => !first.includes(one))];
}
