import '../strings/keyboard';
import { app } from '../app.svelte';
import type Composer from '../composer/Composer.svelte';
import { t } from '../strings/t';
import { keysOf } from '../ui/keys';

// Prompts that were put away for later. They belong to no conversation: what was begun here may be said there.

const key = 'deskhand.stash';
const most = 20;

export function stashed(): string[] {
  try {
    const kept: unknown = JSON.parse(localStorage.getItem(key) ?? '[]');
    return Array.isArray(kept) ? kept.filter((one) => typeof one === 'string') : [];
  } catch {
    return [];
  }
}

function keep(list: readonly string[]): void {
  localStorage.setItem(key, JSON.stringify(list.slice(-most)));
}

/** Puts away what is written, or brings back into an empty field what was put away last. */
export function stash(composer: Pick<Composer, 'read' | 'write'> | undefined): void {
  if (!composer) return;
  const text = composer.read();
  const list = stashed();
  if (text.trim() !== '') {
    keep([...list, text]); // before it is taken out of the field: it must not be lost between them
    composer.write('');
    app.toast({ text: t('keyboard.stashed', { keys: keysOf('stash') }), tone: 'info' });
    return;
  }
  const last = list.pop();
  if (last === undefined) {
    app.toast({ text: t('keyboard.nothing_stashed'), tone: 'info' });
    return;
  }
  composer.write(last);
  keep(list);
}
