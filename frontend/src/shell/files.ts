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

// What the window does with files. A dialog stands open as long as the person likes, and a large file takes as long as the disk does.

/** Asks for files with the system's dialog; none when the person chose none. */
export function chooseFiles(title: string, start: string): Promise<string[]> {
  return done(ChooseFiles(title, start).then((paths: string[] | null) => paths ?? []));
}

/** Opens an attachment with the system's program for it. What could be run is refused. */
export function openFile(id: string): Promise<void> {
  return done(OpenAttachment(id));
}

/** Shows in the system's file browser where an attachment lies. */
export function revealFile(id: string): Promise<void> {
  return done(RevealAttachment(id));
}

/** Writes an attachment to a file that the person chooses; undefined when they chose none. */
export async function saveAttachment(title: string, id: string): Promise<string | undefined> {
  return (await done(SaveAttachment(title, id))) || undefined;
}

/** Takes in the picture on the clipboard, and gives the attachment's id; undefined where there is none. */
export async function pastePicture(name: string): Promise<string | undefined> {
  return (await done(PastePicture(name))) || undefined;
}

/**
 * Opens a file of a conversation's directories, by its whole path, in the person's editor, at a line. A page in a browser can start
 * nothing: there the path is copied, which the person has to be told.
 */
export async function openPath(session: string, path: string, line = 0): Promise<'opened' | 'copied'> {
  if (surface() === 'browser') {
    await copyText(path);
    return 'copied';
  }
  await done(OpenPath(session, path, line));
  return 'opened';
}

/** Shows in the system's file browser where a file or directory of a conversation lies; in a browser as openPath. */
export async function revealPath(session: string, path: string): Promise<'opened' | 'copied'> {
  if (surface() === 'browser') {
    await copyText(path);
    return 'copied';
  }
  await done(RevealPath(session, path));
  return 'opened';
}

/** Asks for files with the browser's dialog. It must be called while the person's click still counts. */
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
