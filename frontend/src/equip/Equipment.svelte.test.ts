import { flushSync, mount, unmount } from 'svelte';
import { afterEach, expect, test, vi } from 'vitest';
import type { McpServer } from '../api/records';
import { allProjects } from '../api/scope';
import { client, navigation } from '../state/state';
import { remember } from './chosen';
import Mcp from './Mcp.svelte';

const server = (name: string, part: Partial<McpServer> = {}): McpServer => ({
  name,
  entry: { type: 'local', command: `run-${name}`, args: [] },
  enabled: true,
  type: 'local',
  transport: 'stdio',
  approved: true,
  hash: 'a'.repeat(64),
  ...part,
});

let ended: (() => void) | undefined;

afterEach(() => {
  ended?.();
  vi.restoreAllMocks();
  document.body.replaceChildren();
});

async function open(directory: string, files: Record<string, McpServer[]>) {
  vi.spyOn(client, 'mcpServers').mockImplementation((of) =>
    Promise.resolve({ items: files[of] ?? [], path: `${of}/mcp.json` }),
  );
  remember({ scope: 'project', directory: '' }, '/nowhere');
  navigation.view = { name: 'settings', at: 'mcp', directory };
  const component = mount(Mcp, { target: document.body });
  ended = () => void unmount(component);
  await settled();
}

async function settled() {
  for (let i = 0; i < 8; i++) await Promise.resolve();
  flushSync();
}

const rows = (list: string) =>
  [...document.querySelectorAll<HTMLElement>('ul')]
    .filter(
      (one) =>
        (one.getAttribute('aria-label') ??
          document.getElementById(one.getAttribute('aria-labelledby') ?? '')?.textContent) === list,
    )
    .flatMap((one) => [...one.children].map((row) => row.textContent.replace(/\s+/g, ' ').trim()));

async function choose(name: string) {
  const label = [...document.querySelectorAll('label')].find((one) => one.textContent.trim() === name);
  label?.querySelector('input')?.click();
  await settled();
}

test('a project shows what it has from all projects, and which of it it has replaced', async () => {
  await open('/w', {
    '/w': [server('files')],
    [allProjects]: [server('files'), server('notes'), server('off', { enabled: false })],
  });
  expect(rows('MCP servers')).toHaveLength(1);
  const inherited = rows('From all projects');
  expect(inherited[0]).toContain('This project has its own');
  expect(inherited[1]).toMatch(/notes run-notes.*Override here/);
  expect(inherited[2]).toContain('Off');
});

test('the entries of all projects say which of them the project has replaced, and are saved for all', async () => {
  await open('/w', { '/w': [server('files')], [allProjects]: [server('files'), server('notes')] });
  await choose('All projects');
  const [files, notes] = rows('MCP servers');
  expect(files).toContain('“w” has its own entry with this name');
  expect(notes).not.toContain('its own entry');
  const save = vi.spyOn(client, 'saveMcp').mockResolvedValue(server('notes', { enabled: false }));
  document.querySelector<HTMLElement>('[role=switch][aria-label="Give notes to agents"]')?.click();
  await settled();
  expect(save.mock.calls[0]?.slice(0, 2)).toEqual([allProjects, 'notes']);
});

test('an entry of a project begins as a copy of that of all projects', async () => {
  await open('/w', { [allProjects]: [server('notes')] });
  [...document.querySelectorAll('button')].find((one) => one.textContent.trim() === 'Override here')?.click();
  await settled();
  expect(document.querySelector('h3')?.textContent).toBe('Override notes in this project');
  const save = vi.spyOn(client, 'saveMcp').mockResolvedValue(server('notes'));
  [...document.querySelectorAll('button')].find((one) => one.textContent.trim() === 'Save')?.click();
  await settled();
  expect(save.mock.calls[0]).toEqual([
    '/w',
    'notes',
    { type: 'local', command: 'run-notes', args: [] },
    undefined,
  ]);
});

test('a link to all projects opens those', async () => {
  await open(allProjects, { [allProjects]: [server('notes')] });
  expect(rows('MCP servers')).toHaveLength(1);
  expect(
    document.querySelector<HTMLInputElement>('input[type=radio]:checked')?.closest('label')?.textContent,
  ).toContain('All projects');
});
