import type { Event } from '../api/records';
import { type App } from '../app.svelte';
import type { Toasts } from '../state/toasts.svelte';
import '../strings/settings';
import { t } from '../strings/t';
import { titleOf } from '../ui/format';

// Notices: events that change no record. This module is loaded with the first notice.

interface Notice {
  code: string;
  detail?: string;
}

/** Tells the person of a notice, and remembers in app.stalls of which conversations nothing can be stored. */
export function handleNotice(app: App, toasts: Toasts, event: Event): void {
  const { code, detail = '' } = event.data as Notice;
  const id = event.session ?? '';
  switch (code) {
    case 'storage.failed':
      // It is told again and again, and mostly by all that work.
      if (app.stalls.size === 0) toasts.show({ text: t('notice.stalled', { detail }), tone: 'danger' });
      app.stalls.set(id, detail);
      break;
    case 'storage.works':
      app.stalls.delete(id);
      break;
    case 'journal.damaged': {
      const of = app.sessions.get(id);
      const title = of ? titleOf(of) : t('session.untitled');
      toasts.show({ text: t('notice.damaged', { title, detail }), tone: 'danger' });
    }
  }
}
