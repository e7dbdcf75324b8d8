import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest';
import {
  chooseDirectory,
  copyText,
  hasDirectoryDialog,
  onShow,
  openLink,
  pastedText,
  safeLink,
  saveExport,
  surface,
} from './wails';

const desktop = window as unknown as { go?: unknown; runtime?: unknown };

afterEach(() => {
  delete desktop.go;
  delete desktop.runtime;
  vi.useRealTimers();
});

test.each([
  ['https://example.com/a?b#c', 'https://example.com/a?b#c'],
  ['mailto:ada@example.com', 'mailto:ada@example.com'],
  ['HTTP://EXAMPLE.com', 'http://example.com/'],
  ['javascript:alert(1)', undefined],
  ['file:///etc/passwd', undefined],
  ['src/main.ts', undefined],
  ['//example.com', undefined],
  ['', undefined],
])('the link %s', (address, url) => {
  expect(safeLink(address)).toBe(url);
});

describe('in a browser', () => {
  test('links open in a tab that knows nothing of us', async () => {
    const open = vi.spyOn(window, 'open').mockReturnValue(null);
    await openLink('https://example.com');
    await openLink('javascript:alert(1)');
    expect(open.mock.calls).toEqual([['https://example.com/', '_blank', 'noopener,noreferrer']]);
    expect([surface(), hasDirectoryDialog()]).toEqual(['browser', false]);
    onShow(() => undefined)(); // registers nothing and removes nothing
  });
});

describe('in the window', () => {
  const ChooseDirectory = vi.fn((_title: string, _start: string) => Promise.resolve(''));
  const SaveExport = vi.fn((_title: string, _source: string) => Promise.resolve(''));
  const OpenLink = vi.fn((_url: string) => Promise.resolve());
  const ClipboardSetText = vi.fn((_text: string) => Promise.resolve(true));

  beforeEach(() => {
    desktop.go = { app: { Files: { ChooseDirectory, SaveExport }, Window: { OpenLink } } };
    desktop.runtime = { ClipboardSetText, ClipboardGetText: () => Promise.resolve('pasted') };
  });

  test('the system’s dialog chooses, and may be closed without a choice', async () => {
    expect(hasDirectoryDialog()).toBe(true);
    expect(await chooseDirectory('Title', '/home')).toBeUndefined();
    ChooseDirectory.mockResolvedValueOnce('/home/ada');
    expect(await chooseDirectory('Title', '/home')).toBe('/home/ada');
    expect(ChooseDirectory).toHaveBeenLastCalledWith('Title', '/home');
  });

  test('it saves what is exported, where the person wants it', async () => {
    expect(await saveExport('Title', '/client/sessions/s1/export?format=md')).toBeUndefined();
    SaveExport.mockResolvedValueOnce('/home/ada/a.md');
    expect(await saveExport('Title', '/client/sessions/s1/export?format=md')).toBe('/home/ada/a.md');
    expect(SaveExport).toHaveBeenLastCalledWith('Title', '/client/sessions/s1/export?format=md');
    SaveExport.mockRejectedValueOnce(
      '{"code":"save.failed","params":{"path":"/a","detail":"full"}}' as never,
    );
    await expect(saveExport('', '')).rejects.toMatchObject({ code: 'save.failed', params: { path: '/a' } });
  });

  test('links and the clipboard go through it', async () => {
    await openLink('https://example.com');
    await copyText('text');
    expect(OpenLink).toHaveBeenCalledWith('https://example.com/');
    expect(ClipboardSetText).toHaveBeenCalledWith('text');
    expect(await pastedText()).toBe('pasted');
  });

  test('it is told what to show', () => {
    const ends = vi.fn();
    let tell!: (request: string, session: string) => void;
    const EventsOnMultiple = vi.fn((_name: string, heard: typeof tell) => {
      tell = heard;
      return ends;
    });
    desktop.runtime = { EventsOnMultiple };
    const show = vi.fn();
    const end = onShow(show);
    tell('r1', 's1');
    expect(EventsOnMultiple.mock.calls[0]?.[0]).toBe('deskhand:show');
    expect(show).toHaveBeenCalledExactlyOnceWith('r1', 's1');
    end();
    expect(ends).toHaveBeenCalledOnce();
  });

  test('what it refuses is a code', async () => {
    OpenLink.mockRejectedValueOnce('{"code":"link.failed","params":{"why":"x"}}' as never);
    await expect(openLink('https://example.com')).rejects.toMatchObject({
      code: 'link.failed',
      params: { why: 'x' },
    });
    ChooseDirectory.mockRejectedValueOnce(new Error('no words') as never);
    await expect(chooseDirectory('', '')).rejects.toMatchObject({ code: 'shell.failed', detail: 'no words' });
  });

  test('a method that never answers is given up, a dialog is not', async () => {
    vi.useFakeTimers();
    OpenLink.mockReturnValueOnce(new Promise(() => undefined));
    const opened = expect(openLink('https://example.com')).rejects.toMatchObject({ code: 'shell.silent' });
    await vi.advanceTimersByTimeAsync(5_000);
    await opened;
    let chosen!: (path: string) => void;
    ChooseDirectory.mockReturnValueOnce(new Promise<string>((done) => (chosen = done)));
    const waiting = chooseDirectory('', '');
    await vi.advanceTimersByTimeAsync(600_000);
    chosen('/late');
    expect(await waiting).toBe('/late');
  });
});
