// @vitest-environment jsdom
import { beforeEach, expect, test, vi } from 'vitest';
import { conversations, navigation, overlay } from '../state/state';
import { session } from '../test/records';
import { commandIds } from '../ui/keys';
import { act, actionsNow, after, behindSlash } from './actions';
import type { Frame } from './frame';
import { commandGroups } from './groups';
import { helpPages, linked, pageParts, parts } from './pages';

const frame: Frame = { conversation: () => undefined, sidebar: vi.fn(), region: vi.fn() };

beforeEach(() => {
  localStorage.clear();
  conversations.sessions.clear();
  overlay.shown = undefined;
});

test('every command has its place in a group, once', () => {
  expect(
    commandGroups()
      .flatMap((group) => group.commands)
      .toSorted(),
  ).toEqual(commandIds.toSorted());
});

test('the palette has every command that does anything now, and each has a name', () => {
  conversations.sessions.set(
    's1',
    session({ offers: ['fork'], workspace: { id: 'w', path: '/x', missing: true } }),
  );
  vi.spyOn(navigation, 'current', 'get').mockReturnValue(conversations.sessions.get('s1'));
  const names = actionsNow(frame, true);
  const ids = names.map((one) => one.id);
  const none = ['palette', 'stop', 'undo', 'closePane', 'paneLeft', 'paneRight', 'paneUp', 'paneDown'];
  for (const id of commandIds)
    if (!none.includes(id) && !/^nth[2-9]$/.test(id)) expect(ids, id).toContain(id);
  for (const { name } of names) expect(name).not.toMatch(/^command\./);
  expect(new Set(ids).size).toBe(ids.length);
});

test('without a conversation nothing is offered that needs one', () => {
  const ids = actionsNow(frame, true).map((one) => one.id);
  for (const id of ['find', 'stop', 'mode', 'archive', 'changes', 'send']) expect(ids).not.toContain(id);
  act('delete', frame, false); // and its keys do nothing
});

test('behind a slash each has a name that can be typed, and no other has it', () => {
  conversations.sessions.set('s1', session({ offers: ['fork'] }));
  vi.spyOn(navigation, 'current', 'get').mockReturnValue(conversations.sessions.get('s1'));
  const names = behindSlash(frame).map((one) => one.name);
  for (const name of names) expect(name).toMatch(/^[a-z0-9]+(-[a-z0-9]+)*$/);
  expect(new Set(names).size).toBe(names.length);
  expect(names).toEqual(expect.arrayContaining(['archive', 'export-md', 'model', 'new', 'new-in', 'stash']));
  expect(names).not.toContain('send');
});

test('modes go round', () => {
  const choices = [
    { value: 'ask', name: 'Ask' },
    { value: 'code', name: 'Code' },
  ];
  const mode = (value: string) => ({ id: 'mode', name: 'Mode', type: 'select' as const, value, choices });
  expect(after(mode('ask'))).toBe('code');
  expect(after(mode('code'))).toBe('ask');
  expect(after(mode('gone'))).toBe('ask');
});

test('the manual is there, and its links lead to its pages', async () => {
  const ids = helpPages().map((page) => page.id);
  expect(ids.slice(0, 2)).toEqual(['keys', 'manual/first-conversation']);
  for (const id of ids.slice(1)) {
    const [first] = await pageParts(id);
    expect(first && 'text' in first ? first.text.length : 0, id).toBeGreaterThan(5);
  }
  expect(
    linked('[a](agents.md#b) [c](../api.md) [d](https://e.example/) [f](../../README.md)', 'manual/mcp'),
  ).toBe(
    '[a](https://manual.invalid/manual/agents#b) [c](https://manual.invalid/api) [d](https://e.example/) f',
  );
});

test('pictures stand between the texts, those of both looks', () => {
  const made = parts(
    '# A\n\n![What one sees](../images/native-question-light.png)\n\nB\n![Not there](../images/none-light.png)\nC [d](mcp.md)\n',
    'manual/mcp',
  );
  expect(made.map((part) => ('text' in part ? part.text.trim() : part.alt))).toEqual([
    '# A',
    'What one sees',
    'B',
    'C [d](https://manual.invalid/manual/mcp)',
  ]);
  const picture = made[1];
  expect(picture && 'light' in picture ? [picture.light, picture.dark] : []).toEqual([
    expect.stringMatching(/native-question-light/),
    expect.stringMatching(/native-question-dark/),
  ]);
});
