import { ChooseDirectory, SaveExport } from '../../wailsjs/go/app/Files';
import { OpenLink } from '../../wailsjs/go/app/Window';
import { ClipboardGetText, ClipboardSetText, EventsOn } from '../../wailsjs/runtime/runtime';
import { ApiError } from '../api/errors';

// The desktop: the shell's bound methods and Wails' runtime in the window, with a fallback for each in a browser. No other file imports
// generated Wails code or knows which of the two runs.

/** The time limit in milliseconds of a bound method without a dialog. A method that panics never resolves its promise. */
const answerWithin = 5_000;

type Surface = 'window' | 'browser';

/** The generated functions exist in a browser too, but window.go exists only in the window. */
export function surface(): Surface {
  return (window as { go?: { app?: unknown } }).go?.app ? 'window' : 'browser';
}

/** Reports whether the system's directory dialog is available. */
export function hasDirectoryDialog(): boolean {
  return surface() === 'window';
}

/** Opens the system's directory dialog, without a time limit; undefined when the person cancels. */
export async function chooseDirectory(title: string, start: string): Promise<string | undefined> {
  try {
    return (await ChooseDirectory(title, start)) || undefined;
  } catch (thrown) {
    throw shellError(thrown);
  }
}

/**
 * Saves an export of the API at source to a file that the person chooses; undefined when the person cancels. The call has no time limit.
 */
export async function saveExport(title: string, source: string): Promise<string | undefined> {
  try {
    return (await SaveExport(title, source)) || undefined;
  } catch (thrown) {
    throw shellError(thrown);
  }
}

const openable = new Set(['http:', 'https:', 'mailto:']);

/** Returns an address as a full URL; undefined where its scheme must not be opened. */
export function safeLink(address: string): string | undefined {
  try {
    const url = new URL(address);
    return openable.has(url.protocol) ? url.href : undefined;
  } catch {
    return undefined; // a relative address is a path of the workspace, which a browser cannot open
  }
}

/** Opens a link in the system's browser, or in a new tab of the browser. */
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

/** Returns the text on the clipboard. A browser may ask the person, and refuse. */
export async function pastedText(): Promise<string> {
  return surface() === 'window' ? soon(ClipboardGetText()) : navigator.clipboard.readText();
}

/**
 * Calls show when a person chooses a request in a dialog or notification of the system; without an id all waiting requests. The returned
 * function ends that. In a browser show is never called.
 */
export function onShow(show: (request: string, session: string) => void): () => void {
  return surface() === 'window' ? EventsOn('deskhand:show', show) : () => undefined;
}

/** Mod is the Command key. */
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

/** Converts an error of the shell, whose text is JSON with a code and its parameters, like the API's problems. */
export function shellError(thrown: unknown): ApiError {
  if (thrown instanceof ApiError) return thrown;
  const text = thrown instanceof Error ? thrown.message : String(thrown);
  try {
    const { code, params } = JSON.parse(text) as { code: string; params?: Record<string, string> };
    if (typeof code === 'string') return new ApiError(code, params);
  } catch {
    // Text that is not JSON comes from Wails itself.
  }
  return new ApiError('shell.failed', {}, 0, text);
}
