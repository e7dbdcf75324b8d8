import type { Client } from '../api/client';
import { ApiError, problem } from '../api/errors';
import { surface } from '../shell/wails';
import type { Attachment, AttachResult, FoundPath, SessionFile } from '../api/records';

// The attachment calls of the client API.

const part = encodeURIComponent;

interface Lists {
  items: Attachment[] | null;
  problems?: AttachResult['problems'] | null;
}

const taken = ({ items, problems }: Lists): AttachResult => ({
  items: items ?? [],
  problems: problems ?? [],
});

/** Attaches files of this computer by their paths. With follow, links may lead out of the session's directories. */
export async function attachPaths(
  client: Client,
  session: string,
  paths: readonly string[],
  follow: boolean,
  signal: AbortSignal,
): Promise<AttachResult> {
  return taken(
    await client.json<Lists>('/client/attachments', signal, {
      paths,
      session,
      ...(follow ? { follow } : {}),
    }),
  );
}

export const attachmentOf = (client: Client, id: string, signal: AbortSignal) =>
  client.json<Attachment>(`/client/attachments/${part(id)}`, signal);

/** Uploads a file that has no path, and reports how many bytes have been sent. */
export async function upload(
  client: Client,
  file: File,
  signal: AbortSignal,
  progress: (sent: number) => void,
): Promise<AttachResult> {
  const { body, type } = await multipart(file);
  const headers = await client.headers();
  signal.throwIfAborted();
  // fetch reports no progress of an upload; XMLHttpRequest does.
  const request = new XMLHttpRequest();
  const abort = () => request.abort();
  signal.addEventListener('abort', abort);
  try {
    return await new Promise<AttachResult>((done, fail) => {
      request.open('POST', '/client/attachments');
      headers.forEach((value, name) => request.setRequestHeader(name, value));
      request.setRequestHeader('Content-Type', type);
      request.responseType = 'json';
      request.upload.onprogress = (event) => progress(Math.min(event.loaded, file.size));
      request.onload = () => {
        const { status, response } = request;
        if (status < 200 || status >= 300) fail(problem(status, response));
        else if (response === null)
          fail(new ApiError('protocol', {}, status)); // the body is not JSON
        else done(taken(response as Lists));
      };
      request.onerror = () => {
        client.doubt();
        fail(new ApiError('network'));
      };
      request.onabort = () => fail(signal.reason);
      request.send(body);
    });
  } finally {
    signal.removeEventListener('abort', abort);
  }
}

/**
 * Builds a multipart form with one file by hand. The window's engine drops the files of a FormData that goes to the program's own scheme,
 * so there the body is bytes. In a browser the body is a Blob, which the browser reads from the disk while it sends.
 */
export async function multipart(file: File): Promise<{ body: Blob | ArrayBuffer; type: string }> {
  const boundary = `deskhand-${crypto.randomUUID()}`;
  const name = file.name.replace(/["\r\n]/g, (sign) => encodeURIComponent(sign));
  const mime = /^[\w.+-]+\/[\w.+-]+$/.exec(file.type)?.[0] ?? 'application/octet-stream';
  const body = new Blob([
    `--${boundary}\r\nContent-Disposition: form-data; name="file"; filename="${name}"\r\nContent-Type: ${mime}\r\n\r\n`,
    file,
    `\r\n--${boundary}--\r\n`,
  ]);
  const type = `multipart/form-data; boundary=${boundary}`;
  return { body: surface() === 'window' ? await body.arrayBuffer() : body, type };
}

export const contentPath = (id: string, download = false) =>
  `/client/attachments/${part(id)}/content${download ? '?download=1' : ''}`;
export const thumbnailPath = (id: string) => `/client/attachments/${part(id)}/thumbnail`;

/** Lists the files that were sent or given in a session, the newest first. */
export async function sessionFiles(
  client: Client,
  session: string,
  before: string | undefined,
  signal: AbortSignal,
) {
  const page = await client.json<{ items: SessionFile[] | null; next?: string | number }>(
    `/client/sessions/${part(session)}/files?limit=100${before ? `&before=${part(before)}` : ''}`,
    signal,
  );
  return { items: page.items ?? [], next: page.next === undefined ? undefined : String(page.next) };
}

/** Finds the paths below the session's directory that match the typed text. */
export async function findPaths(client: Client, session: string, typed: string, signal: AbortSignal) {
  const found = await client.json<{ items: FoundPath[] | null; more?: boolean }>(
    `/client/sessions/${part(session)}/paths?limit=20&q=${part(typed)}`,
    signal,
  );
  return { items: found.items ?? [], more: found.more === true };
}
