import { ChooseDirectory, SaveExport } from '../../wailsjs/go/app/Files';
import { OpenLink } from '../../wailsjs/go/app/Window';
import { ClipboardGetText, ClipboardSetText, EventsOn } from '../../wailsjs/runtime/runtime';
import { ApiError } from '../api/errors';

// What touches the desktop. In the window these are the shell's bound methods and Wails' runtime; in a browser each has a
// fallback. Nothing else in the frontend knows which of the two it runs in, and nothing else imports what Wails generates.

/** A bound method that panics leaves its promise pending for ever; nothing but a dialog may take longer than this. */
const answerWithin = 5_000;

export type Surface = 'window' | 'browser';

/** The generated functions exist everywhere; what they call hangs on the window that Wails made. */
export function surface(): Surface {
  return (window as { go?: { app?: unknown } }).go?.app ? 'window' : 'browser';
}

/** Whether the system's own directory dialog can be shown. */
export function hasDirectoryDialog(): boolean {
  return surface() === 'window';
}

/** Asks for a directory with the system's dialog; undefined when the person chose none. It may stand open as long as they like. */
export async function chooseDirectory(title: string, start: string): Promise<string | undefined> {
  try {
    return (await ChooseDirectory(title, start)) || undefined;
  } catch (thrown) {
    throw shellError(thrown);
  }
}

/**
 * Has the window write what a path of the API exports to a file that the person chooses; undefined when they chose none. It takes as
 * long as they, and the conversation, do.
 */
export async function saveExport(title: string, source: string): Promise<string | undefined> {
  try {
    return (await SaveExport(title, source)) || undefined;
  } catch (thrown) {
    throw shellError(thrown);
  }
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
  if (surface() === 'window') await soon(OpenLink(url));
  else window.open(url, '_blank', 'noopener,noreferrer');
}

export async function copyText(text: string): Promise<void> {
  if (surface() === 'window') await soon(ClipboardSetText(text));
  else await navigator.clipboard.writeText(text);
}

/** What is on the clipboard. A browser may ask the person first, and refuse. */
export async function pastedText(): Promise<string> {
  return surface() === 'window' ? soon(ClipboardGetText()) : navigator.clipboard.readText();
}

/**
 * Hears of a request that the person wants to see in the window, from a dialog or a notification of the system; without an id all that
 * wait. In a browser there is nothing to hear. Gives what ends it.
 */
export function onShow(show: (request: string, session: string) => void): () => void {
  return surface() === 'window' ? EventsOn('deskhand:show', show) : () => undefined;
}

/** Whether Mod is the Command key. */
export const isMac = /Mac|iPhone|iPad/.test(navigator.platform);

async function soon<T>(call: Promise<T>): Promise<T> {
  let timer: ReturnType<typeof setTimeout> | undefined;
  const late = new Promise<never>((_, reject) => {
    timer = setTimeout(() => reject(new ApiError('shell.silent')), answerWithin);
  });
  try {
    return await Promise.race([call, late]);
  } catch (thrown) {
    throw shellError(thrown);
  } finally {
    clearTimeout(timer);
  }
}

/** The shell rejects with the JSON text of a code and its parameters, like the problems of the API. */
export function shellError(thrown: unknown): ApiError {
  if (thrown instanceof ApiError) return thrown;
  const text = thrown instanceof Error ? thrown.message : String(thrown);
  try {
    const { code, params } = JSON.parse(text) as { code: string; params?: Record<string, string> };
    if (typeof code === 'string') return new ApiError(code, params);
  } catch {
    // No JSON: Wails itself speaks.
  }
  return new ApiError('shell.failed', {}, 0, text);
}
