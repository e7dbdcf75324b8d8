import { afterEach, beforeAll, expect, test, vi } from 'vitest';
import { multipart, upload } from './upload';

const desktop = window as unknown as { go?: unknown };

// jsdom lacks Blob.arrayBuffer.
beforeAll(() => {
  Blob.prototype.arrayBuffer ??= function (this: Blob) {
    return new Promise((done) => {
      const reader = new FileReader();
      reader.onload = () => done(reader.result as ArrayBuffer);
      reader.readAsArrayBuffer(this);
    });
  };
});

afterEach(() => {
  delete desktop.go;
  vi.unstubAllGlobals();
});

const file = new File(['content'], 'a "b"\r\nX: y.txt', { type: 'text/plain' });
const want = (boundary: string) =>
  `--${boundary}\r\nContent-Disposition: form-data; name="file"; filename="a %22b%22%0D%0AX: y.txt"\r\nContent-Type: text/plain\r\n\r\ncontent\r\n--${boundary}--\r\n`;
const boundaryOf = (type: string) =>
  /^multipart\/form-data; boundary=(deskhand-[0-9a-f-]{36})$/.exec(type)?.[1] ?? '';

test('a browser is given a file to read, the window bytes', async () => {
  const inBrowser = await multipart(file);
  expect(inBrowser.body).toBeInstanceOf(Blob);
  expect((inBrowser.body as Blob).size).toBe(want(boundaryOf(inBrowser.type)).length);
  desktop.go = { app: {} };
  const { body, type } = await multipart(file);
  expect(new TextDecoder().decode(body as ArrayBuffer)).toBe(want(boundaryOf(type)));
});

test('a type that is none is not told', async () => {
  desktop.go = { app: {} };
  const { body } = await multipart(new File(['x'], 'x', { type: 'nothing' }));
  expect(new TextDecoder().decode(body as ArrayBuffer)).toContain(
    'Content-Type: application/octet-stream\r\n',
  );
});

test('an answer that is no JSON is a failure: what is taken in next waits for it', async () => {
  class Line {
    upload = {};
    onload?: () => void;
    status = 200;
    response = null; // as for an HTML page of a proxy
    open = vi.fn();
    setRequestHeader = vi.fn();
    send = () => queueMicrotask(() => this.onload?.());
  }
  vi.stubGlobal('XMLHttpRequest', Line);
  const client = { headers: () => new Headers() } as never;
  const sent = upload(client, file, new AbortController().signal, () => undefined);
  const waits = new Promise((done) => setTimeout(done, 100, 'waits'));
  await expect(Promise.race([sent, waits])).rejects.toMatchObject({ code: 'protocol', status: 200 });
});
