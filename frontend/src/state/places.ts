import { asApiError } from '../api/errors';
import type { Session } from '../api/records';
import { fileBlob, webPicture } from '../api/fileblob';
import { filesAmong } from '../api/there';
import { writeFile } from '../api/treefile';
import type { Places, Writing } from '../markdown/places';
import { openPath } from '../shell/files';
import { t } from '../strings/t';
import { client, navigation, server, toasts } from './state';

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
    webPicture: (address, signal) => webPicture(client, address, signal),
    // A file that is read here is the person's, and shows what it wants to show: only answers offer to write.
    get writing() {
      return server.readOnly || base !== undefined ? undefined : writingIn(session().id);
    },
  };
}

function writingIn(id: string): Writing {
  return {
    read: async (path) => {
      try {
        const { kind, text, whole, version } = await client.call('GET /client/sessions/{id}/tree/preview', {
          path: { id },
          query: { path },
        });
        return { version, text: kind === 'text' && whole ? (text ?? '') : undefined };
      } catch (thrown) {
        if (asApiError(thrown).code === 'tree.missing') return undefined;
        throw thrown;
      }
    },
    write: async (path, text, over) => {
      const bytes = new TextEncoder().encode(text);
      const done = await writeFile(
        client,
        id,
        path,
        bytes,
        over === undefined ? 'nothing' : { version: over },
      );
      navigation.panel.written++;
      return done.version;
    },
    isOther: (thrown) => ['tree.changed', 'tree.exists'].includes(asApiError(thrown).code),
  };
}
