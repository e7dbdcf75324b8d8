import { afterEach, beforeAll, expect, test } from 'vitest';
import { multipart } from './calls';

const desktop = window as unknown as { go?: unknown };

// jsdom has no such method.
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
