import type { Event } from '../api/records';
import type { Conversations } from './conversations.svelte';
import type { Toasts } from './toasts.svelte';
import '../strings/settings';
import { t } from '../strings/t';
import { titleOf } from '../ui/format';

// Notices: events that change no record. This module is loaded with the first notice.

interface Notice {
  code: string;
  detail?: string;
}

/** Tells the person of a notice, and remembers in stalls of which conversations nothing can be stored. */
export function handleNotice({ sessions, stalls }: Conversations, toasts: Toasts, event: Event): void {
  const { code, detail = '' } = event.data as Notice;
  const id = event.session ?? '';
  switch (code) {
    case 'storage.failed':
      // The server repeats this notice, for each conversation that works. One toast tells it.
      if (stalls.size === 0) toasts.show({ text: t('notice.stalled', { detail }), tone: 'danger' });
      stalls.set(id, detail);
      break;
    case 'storage.works':
      stalls.delete(id);
      break;
    case 'journal.damaged': {
      const of = sessions.get(id);
      const title = of ? titleOf(of) : t('session.untitled');
      toasts.show({ text: t('notice.damaged', { title, detail }), tone: 'danger' });
    }
  }
}
