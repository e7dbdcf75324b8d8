import { app } from '../app.svelte';
import { openPath } from '../shell/files';
import { t } from '../strings/t';

/** Opens a file of a conversation outside of here: in the person's editor, or, in a browser, as a path to take there. */
export async function openOutside(session: string, path: string, line?: number): Promise<void> {
  const cwd = app.sessions.get(session)?.cwd ?? '';
  try {
    if ((await openPath(session, `${cwd}/${path}`, line)) === 'copied')
      app.toast({ text: t('changes.path.copied', { path }), tone: 'info' });
  } catch (thrown) {
    app.fail(thrown);
  }
}
