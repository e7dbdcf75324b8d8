import type { Event } from '../api/records';
import { titleOf, type App } from '../app.svelte';
import '../strings/settings';
import { t } from '../strings/t';

// What the server tells that is no change of anything: loaded with the first of it.

interface Notice {
  code: string;
  detail?: string;
}

export function heed(app: App, event: Event): void {
  const { code, detail = '' } = event.data as Notice;
  const id = event.session ?? '';
  switch (code) {
    case 'storage.failed':
      // It is told again and again, and mostly by all that work.
      if (app.stalls.size === 0) app.toast({ text: t('notice.stalled', { detail }), tone: 'danger' });
      app.stalls.set(id, detail);
      break;
    case 'storage.works':
      app.stalls.delete(id);
      break;
    case 'journal.damaged': {
      const of = app.sessions.get(id);
      const title = of ? titleOf(of) : t('session.untitled');
      app.toast({ text: t('notice.damaged', { title, detail }), tone: 'danger' });
    }
  }
}
