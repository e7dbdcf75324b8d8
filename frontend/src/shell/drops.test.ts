import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest';
import { acceptDrops, droppedFiles, isAbsolute, watchDrops, type DropTarget } from './drops';

/** Creates a drag event; jsdom has no DragEvent. */
function drag(type: string, types: readonly string[], items: readonly unknown[] = []) {
  const event = new Event(type, { bubbles: true, cancelable: true });
  return Object.assign(event, { dataTransfer: { types, dropEffect: 'move', items }, relatedTarget: null });
}

const desktop = window as unknown as { go?: unknown; runtime?: unknown };
let page: Document;
let ends: (() => void) | undefined;

function taker() {
  return { over: vi.fn(), leave: vi.fn(), drop: vi.fn() } satisfies DropTarget;
}

function send(type: string, types: readonly string[], items: readonly unknown[] = []) {
  const event = drag(type, types, items);
  page.body.dispatchEvent(event);
  return [event.defaultPrevented, event.dataTransfer.dropEffect];
}

const item = (name: string, isDirectory = false) => ({
  kind: 'file',
  webkitGetAsEntry: () => ({ isDirectory }),
  getAsFile: () => new File(['x'], name),
});

beforeEach(() => {
  page = document.implementation.createHTMLDocument();
});

afterEach(() => {
  ends?.();
  ends = undefined;
  delete desktop.go;
  delete desktop.runtime;
  vi.useRealTimers();
});

describe('in a browser', () => {
  test('what nobody takes is refused, text is left alone', () => {
    watchDrops(page);
    for (const type of ['dragenter', 'dragover', 'drop']) {
      const refused = type === 'drop' ? 'move' : 'none';
      expect(send(type, ['Files'])).toEqual([true, refused]);
      expect(send(type, ['text/uri-list', 'text/html'])).toEqual([true, refused]);
      expect(send(type, ['text/plain', 'text/html'])).toEqual([false, 'move']);
    }
  });

  test('files go to who accepts them, directories by their names', () => {
    watchDrops(page);
    const target = taker();
    ends = acceptDrops(target);
    expect(send('dragover', ['Files'], [item('a'), item('b')])).toEqual([true, 'copy']);
    expect(target.over.mock.lastCall?.[0]).toBe(2);
    expect(send('dragover', ['text/uri-list'])).toEqual([true, 'none']); // a link, which has no file to read
    send('drop', ['Files'], [item('a'), item('b', true)]);
    const [what] = target.drop.mock.lastCall ?? [];
    expect([what.files.map((file: File) => file.name), what.directories, what.paths]).toEqual([
      ['a'],
      ['b'],
      [],
    ]);
    expect(target.leave).toHaveBeenCalled();
    ends();
    expect(send('dragover', ['Files'])).toEqual([true, 'none']);
  });

  test('a drag of which nobody tells the end is over when the pointer moves', () => {
    watchDrops(page);
    const target = taker();
    ends = acceptDrops(target);
    send('dragover', ['Files'], [item('a')]);
    expect(target.leave).not.toHaveBeenCalled();
    page.body.dispatchEvent(new Event('pointermove', { bubbles: true }));
    expect(target.leave).toHaveBeenCalledOnce();
  });

  test('who takes them in one place goes before who takes them anywhere, and there alone', () => {
    watchDrops(page);
    page.body.innerHTML = '<main></main><aside><p></p></aside>';
    const [main, aside, row] = ['main', 'aside', 'p'].map((name) => page.querySelector(name) ?? undefined);
    const place = { ...taker(), within: () => aside };
    const anywhere = taker();
    const endPlace = acceptDrops(place);
    ends = acceptDrops(anywhere);
    const above = (type: string, at: Element | undefined) =>
      at?.dispatchEvent(drag(type, ['Files'], [item('a')]));
    above('dragover', main);
    expect([anywhere.over.mock.calls.length, place.over.mock.calls.length]).toEqual([1, 0]);
    above('dragover', row);
    expect(anywhere.leave).toHaveBeenCalledOnce();
    expect(place.over).toHaveBeenLastCalledWith(1, row);
    above('dragover', main);
    expect(place.leave).toHaveBeenCalledOnce();
    above('dragover', row);
    above('drop', row);
    expect([anywhere.drop.mock.calls.length, place.drop.mock.calls.length]).toEqual([0, 1]);
    expect(place.leave).toHaveBeenCalledTimes(2);
    endPlace();
    above('drop', row);
    expect(anywhere.drop).toHaveBeenCalledOnce();
  });

  test('what is dragged within the page is no file, and a dialog lets nothing through', () => {
    watchDrops(page);
    const target = taker();
    ends = acceptDrops(target);
    send('dragstart', []);
    expect(send('dragover', ['Files'])).toEqual([true, 'none']);
    send('drop', ['Files'], [item('a')]);
    page.body.innerHTML = '<dialog open></dialog>';
    expect(send('dragover', ['Files'])).toEqual([true, 'none']);
    send('drop', ['Files'], [item('a')]);
    expect(target.drop).not.toHaveBeenCalled();
    expect(droppedFiles({ items: [{ kind: 'string' }] } as unknown as DataTransfer).files).toEqual([]);
  });

  test('a drag whose element went away does not refuse files for ever', () => {
    watchDrops(page);
    ends = acceptDrops(taker());
    send('dragstart', []); // and no dragend
    expect(send('dragover', ['Files'])).toEqual([true, 'none']);
    page.body.dispatchEvent(new Event('pointermove', { bubbles: true }));
    expect(send('dragover', ['Files'])).toEqual([true, 'copy']);
  });
});

describe('in the window', () => {
  let tell: (x: number, y: number, paths: string[] | null) => void;
  let target: ReturnType<typeof taker>;

  beforeEach(() => {
    desktop.go = { app: {} };
    desktop.runtime = { OnFileDrop: (heard: typeof tell) => (tell = heard) };
    watchDrops(page);
    target = taker();
    ends = acceptDrops(target);
  });

  test('the paths follow the drop', () => {
    expect(send('dragover', ['text/uri-list', 'text/html'])).toEqual([true, 'copy']);
    expect(target.over.mock.lastCall?.[0]).toBeUndefined();
    send('drop', ['text/uri-list', 'text/html']);
    expect(target.drop).not.toHaveBeenCalled();
    tell(1, 2, ['/home/ada/100% ü.txt', '', 'half of a name']);
    expect(target.drop).toHaveBeenCalledExactlyOnceWith({
      paths: ['/home/ada/100% ü.txt'],
      files: [],
      directories: [],
    });
  });

  test('paths without a drop, too late, or of a link are none', () => {
    tell(1, 2, ['/stale']); // an abandoned drag, reported again
    send('dragstart', []);
    send('drop', ['text/uri-list']);
    tell(1, 2, ['/stale']);
    vi.useFakeTimers();
    send('drop', ['text/uri-list']);
    vi.advanceTimersByTime(2_001);
    tell(1, 2, ['/late']);
    send('drop', ['text/uri-list']);
    tell(1, 2, ['']); // a link
    send('drop', ['text/uri-list']);
    tell(1, 2, null);
    expect(target.drop).not.toHaveBeenCalled();
  });
});

test.each([
  ['/a', true],
  ['C:\\a', true],
  ['\\\\host\\share', true],
  ['', false],
  ['a/b', false],
  ['http://host/', false],
])('the path %s', (path, absolute) => {
  expect(isAbsolute(path)).toBe(absolute);
});
