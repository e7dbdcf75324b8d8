import { flushSync, mount, unmount } from 'svelte';
import { afterEach, expect, test, vi } from 'vitest';
import { client, conversations } from '../state/state';
import { request, session, tool } from '../test/records';
import AllowAlike from './AllowAlike.svelte';

const option = { id: 'yes', name: 'Allow', kind: 'allow_once' };
let ended: (() => void) | undefined;

afterEach(() => {
  ended?.();
  conversations.sessions.clear();
  vi.restoreAllMocks();
  document.body.replaceChildren();
});

/** Opens the dialog about two sessions with the same request in the given directories. */
function asking(call: Parameters<typeof tool>[0], cwds = ['/home/ada/app', '/home/ada/app']): HTMLElement {
  vi.spyOn(client, 'suggestRules').mockResolvedValue({ suggestions: [] });
  const set = cwds.map((cwd, n) => {
    conversations.sessions.set(`s${n}`, session({ id: `s${n}`, cwd }));
    return { request: request({ id: `r${n}`, session: `s${n}`, tool: tool(call) }), allow: option };
  });
  const component = mount(AllowAlike, { target: document.body, props: { set, close: () => undefined } });
  ended = () => void unmount(component);
  flushSync();
  const dialog = document.querySelector('dialog');
  if (!dialog) throw new Error('no dialog');
  return dialog;
}

test('what is allowed for several is shown with all that its command is given', () => {
  const dialog = asking({ kind: 'execute', rawInput: { command: 'git', args: ['push', '--force'] } });
  expect(dialog.querySelector('pre')?.textContent).toBe('$ git');
  expect(dialog.textContent).toContain('--force');
});

test('their directory is told where it is not the one of all of them', () => {
  const rawInput = { command: 'ls', cwd: '/home/ada/app' };
  expect(asking({ kind: 'execute', rawInput }).querySelector('details')).toBeNull();
  ended?.();
  document.body.replaceChildren();
  const apart = asking({ kind: 'execute', rawInput }, ['/home/ada/app', '/home/ada/other']);
  expect(apart.querySelector('details')?.textContent).toContain('"cwd": "/home/ada/app"');
});

test('an edit of several is shown line by line, though its input names the file alone', () => {
  const content = [{ type: 'diff', path: '/home/ada/app/a.ts', oldText: 'old', newText: 'new' }];
  const dialog = asking({ kind: 'edit', rawInput: { path: '/home/ada/app/a.ts' }, content });
  expect(dialog.querySelector('.line.add .text')?.textContent).toBe('new');
});

test('a command of several is shown with the content and the places of its calls', () => {
  const dialog = asking({
    kind: 'execute',
    rawInput: { command: 'patch -p1' },
    content: [{ type: 'diff', path: '/home/ada/app/a.ts', oldText: 'old', newText: 'new' }],
    locations: [{ path: '/etc/hosts' }],
  });
  expect(dialog.querySelector('.line.add .text')?.textContent).toBe('new');
});

test('content of a kind that nobody knows, and text of a resource, is shown open and whole', () => {
  const lines = Array.from({ length: 300 }, (_, n) => `line ${n + 1}`).join('\n');
  const dialog = asking({
    kind: 'other',
    content: [
      { type: 'hologram', what: 'rm -rf /' },
      { type: 'content', content: { type: 'resource', resource: { uri: 'file:///a', text: lines } } },
    ],
  });
  const box = dialog.querySelector('details');
  expect(box?.open).toBe(true);
  expect(box?.textContent).toContain('rm -rf /');
  expect(dialog.textContent).toContain('line 1\n');
  expect(dialog.textContent).toContain('line 300');
});
