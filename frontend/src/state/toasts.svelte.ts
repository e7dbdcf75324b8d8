import { t } from '../strings/t';
import { errorText } from '../ui/format';
import type { Restore } from '../ui/unsaved.svelte';

interface Toast {
  id: number;
  text: string;
  tone: 'info' | 'danger';
  undo?: () => void;
  /** Cancels the work that the toast is about. A toast with cancel stays until that work ends. */
  cancel?: () => void;
}

/** Short messages to the person: visible toasts, and announcements to a screen reader. */
export class Toasts {
  list = $state.raw<readonly Toast[]>([]);
  /** The last announcement. Announced is the end of work that the person waits for, never a single token. */
  announcement = $state('');
  #lastId = 0;

  announce(text: string): void {
    this.announcement = text;
  }

  /** Shows an error until it is dismissed, or for eight seconds. */
  fail(thrown: unknown): void {
    this.show({ text: errorText(thrown), tone: 'danger' });
  }

  /** Shows a toast for some seconds. */
  show(toast: Omit<Toast, 'id'>): void {
    const id = this.hold(toast);
    setTimeout(() => this.dismiss(id), toast.tone === 'danger' ? 8_000 : 5_000);
  }

  /** Offers to undo that a form's text was discarded. Without restore nothing was discarded. reopen shows the form again. */
  discarded(restore: Restore | undefined, reopen: () => void): void {
    if (!restore) return;
    this.show({
      text: t('toast.discarded'),
      tone: 'info',
      undo: () => {
        if (restore()) reopen();
      },
    });
  }

  /** Shows a toast until dismiss is called with the returned id. At most three toasts without cancel are shown. */
  hold(toast: Omit<Toast, 'id'>): number {
    const id = ++this.#lastId;
    const others = this.list.filter((shown) => !shown.cancel).slice(-2);
    this.list = [...this.list.filter((shown) => shown.cancel), ...others, { ...toast, id }];
    return id;
  }

  /** Undoes the last action whose toast offers that. */
  undo(): void {
    const toast = this.list.findLast((shown) => shown.undo !== undefined);
    if (!toast) return;
    toast.undo?.();
    this.dismiss(toast.id);
  }

  dismiss(id: number): void {
    this.list = this.list.filter((toast) => toast.id !== id);
  }
}
