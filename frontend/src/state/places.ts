import type { Session } from '../api/records';
import { fileBlob } from '../api/fileblob';
import { filesAmong } from '../api/there';
import type { Places } from '../markdown/places';
import { openPath } from '../shell/files';
import { t } from '../strings/t';
import { client, navigation, toasts } from './state';

/** Returns the files of a session, for the links in what it says and prints. Relative paths of a file refer to the file's directory. */
export function placesOf(session: () => Session, base?: string): Places {
  return {
    get directories() {
      const { place, cwd, directories } = session();
      return place === 'local' ? [cwd, ...directories] : [];
    },
    base,
    existing: (paths) => filesAmong(client, session().id, paths),
    open: (path, line) => navigation.panel.open({ tab: 'files', path, ...(line ? { line } : {}) }),
    edit: (path, line) =>
      void openPath(session().id, path, line).then(
        (done) => {
          if (done === 'copied') toasts.show({ text: t('path.copied', { path }), tone: 'info' });
        },
        (thrown: unknown) => toasts.fail(thrown),
      ),
    picture: (path, signal) => fileBlob(client, session().id, path, signal),
  };
}
