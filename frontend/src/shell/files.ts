import {
  ChooseFiles,
  OpenAttachment,
  OpenPath,
  RevealAttachment,
  RevealPath,
  SaveAttachment,
} from '../../wailsjs/go/app/Files';
import { PastePicture } from '../../wailsjs/go/app/Attachments';
import { copyText, shellError, surface } from './wails';

// The window's functions for files. They have no time limit: a dialog may stay open, and a large file takes long.

/** Opens the system's file dialog. The list is empty when the person cancels. */
export function chooseFiles(title: string, start: string): Promise<string[]> {
  return done(ChooseFiles(title, start).then((paths: string[] | null) => paths ?? []));
}

/** Opens an attachment with the system's program for its type. The shell refuses executables. */
export function openFile(id: string): Promise<void> {
  return done(OpenAttachment(id));
}

/** Shows an attachment in the system's file manager. */
export function revealFile(id: string): Promise<void> {
  return done(RevealAttachment(id));
}

/** Saves an attachment to a file that the person chooses; undefined when the person cancels. */
export async function saveAttachment(title: string, id: string): Promise<string | undefined> {
  return (await done(SaveAttachment(title, id))) || undefined;
}

/** Attaches the picture on the clipboard and returns the attachment's id; undefined when there is no picture. */
export async function pastePicture(name: string): Promise<string | undefined> {
  return (await done(PastePicture(name))) || undefined;
}

/**
 * Opens a file of a session's directories at a line in the person's editor. A browser cannot start programs: there the path is copied, and
 * the caller must say so.
 */
export async function openPath(session: string, path: string, line = 0): Promise<'opened' | 'copied'> {
  if (surface() === 'browser') {
    await copyText(path);
    return 'copied';
  }
  await done(OpenPath(session, path, line));
  return 'opened';
}

/** Shows a file or directory of a session in the system's file manager. A browser copies the path, as openPath does. */
export async function revealPath(session: string, path: string): Promise<'opened' | 'copied'> {
  if (surface() === 'browser') {
    await copyText(path);
    return 'copied';
  }
  await done(RevealPath(session, path));
  return 'opened';
}

/** Opens the browser's file dialog. Callers must call browseFiles in the click's own handler. */
export function browseFiles(): Promise<File[]> {
  return new Promise((done) => {
    const input = document.createElement('input');
    input.type = 'file';
    input.multiple = true;
    input.onchange = () => done([...(input.files ?? [])]);
    input.oncancel = () => done([]);
    input.click();
  });
}

async function done<T>(call: Promise<T>): Promise<T> {
  try {
    return await call;
  } catch (thrown) {
    throw shellError(thrown);
  }
}
