import type { Client } from '../api/client';
import { ApiError, problem } from '../api/errors';
import { surface } from '../shell/wails';
import type { AttachResult } from '../api/records';

// The upload of attachments, and their addresses.

const part = encodeURIComponent;

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
        else done(response as AttachResult);
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
