import { openPath } from '../shell/files';
import { conversations, toasts } from '../state/state';
import { t } from '../strings/t';

/** Opens a file of a session in the person's editor; in a browser, copies its path. */
export async function openOutside(session: string, path: string, line?: number): Promise<void> {
  const cwd = conversations.sessions.get(session)?.cwd ?? '';
  try {
    if ((await openPath(session, `${cwd}/${path}`, line)) === 'copied')
      toasts.show({ text: t('path.copied', { path }), tone: 'info' });
  } catch (thrown) {
    toasts.fail(thrown);
  }
}
