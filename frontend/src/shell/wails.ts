// What touches the desktop. In the window it is the shell's bound methods and Wails' runtime, which hang on `window`; in a
// browser each has a fallback. Nothing else in the frontend knows which of the two it runs in.

import type * as Files from '../../wailsjs/go/app/Files';
import type * as Shell from '../../wailsjs/go/app/Window';
import { problem } from '../api/errors';

interface Bound {
  app?: { Files?: typeof Files; Window?: typeof Shell };
}

interface Runtime {
  ClipboardSetText?(text: string): Promise<boolean>;
}

declare global {
  interface Window {
    go?: Bound;
    runtime?: Runtime;
  }
}

/** A bound method that panics leaves its promise pending for ever; nothing but a dialog may take longer than this. */
const answerWithin = 5_000;

export type Surface = 'window' | 'browser';

export function surface(): Surface {
  return window.go?.app ? 'window' : 'browser';
}

/** Whether the system's own directory dialog can be shown. */
export function hasDirectoryDialog(): boolean {
  return window.go?.app?.Files !== undefined;
}

/** Asks for a directory with the system's dialog; undefined when the person closed it. It may stand open as long as they like. */
export async function chooseDirectory(title: string, start: string): Promise<string | undefined> {
  const files = window.go?.app?.Files;
  if (!files) return undefined;
  return (await coded(files.ChooseDirectory(title, start))) || undefined;
}

const openable = new Set(['http:', 'https:', 'mailto:']);

/** The address in its full form when it may be opened at all. */
export function safeLink(address: string): string | undefined {
  try {
    const url = new URL(address);
    return openable.has(url.protocol) ? url.href : undefined;
  } catch {
    return undefined; // relative: a path of the workspace, nothing that a browser could open
  }
}

/** Opens a link outside: by the system's browser in the window, in a new tab in a browser. */
export async function openLink(address: string): Promise<void> {
  const url = safeLink(address);
  if (!url) return;
  const shell = window.go?.app?.Window;
  if (shell) {
    await soon(coded(shell.OpenLink(url)));
    return;
  }
  window.open(url, '_blank', 'noopener,noreferrer');
}

export async function copyText(text: string): Promise<void> {
  const set = window.runtime?.ClipboardSetText;
  if (set && surface() === 'window') {
    await soon(set(text));
    return;
  }
  await navigator.clipboard.writeText(text);
}

/** Whether Mod is the Command key. */
export const isMac = /Mac|iPhone|iPad/.test(navigator.platform);

/** What a bound method fails with carries its code and parameters as the text of an Error: Wails passes on nothing else. */
async function coded<T>(call: Promise<T>): Promise<T> {
  try {
    return await call;
  } catch (thrown) {
    let body: unknown;
    try {
      body = JSON.parse(thrown instanceof Error ? thrown.message : String(thrown));
    } catch {
      throw thrown;
    }
    throw problem(0, body);
  }
}

async function soon<T>(call: Promise<T>): Promise<T> {
  let timer: ReturnType<typeof setTimeout> | undefined;
  const late = new Promise<never>((_, reject) => {
    timer = setTimeout(() => reject(new Error('the shell did not answer')), answerWithin);
  });
  try {
    return await Promise.race([call, late]);
  } finally {
    clearTimeout(timer);
  }
}
