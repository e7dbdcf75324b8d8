import type { McpServer, SkillEntry } from '../api/records';
import type { Given } from '../inspect/calls';

// What a directory has for its agents, beside what the agent of a conversation was given.

export type Use = 'given' | 'own' | 'next' | 'approve' | 'off' | 'changed';

export interface ServerInUse {
  name: string;
  transport: string;
  use: Use;
}

/** The MCP servers of a conversation: Deskhand's own, then those of the directory, then what was given and is in the file no more. */
export function serversOf(given: Given | undefined, listed: readonly McpServer[]): ServerInUse[] {
  const told = given?.servers ?? [];
  const own = told.filter((one) => one.own);
  const others = new Set(told.filter((one) => !one.own).map((one) => one.name));
  const use = (server: McpServer): Use => {
    if (others.has(server.name)) return 'given';
    if (!server.enabled) return 'off';
    return server.approved ? 'next' : 'approve';
  };
  return [
    ...own.map((one): ServerInUse => ({ name: one.name, transport: one.transport, use: 'own' })),
    ...listed.map((one) => ({ name: one.name, transport: one.transport, use: use(one) })),
    ...told
      .filter((one) => !one.own && !listed.some((server) => server.name === one.name))
      .map((one): ServerInUse => ({ name: one.name, transport: one.transport, use: 'changed' })),
  ];
}

export type SkillUse = 'ready' | 'approve' | 'unresolved' | 'failed';

export function useOf(entry: SkillEntry): SkillUse {
  if (entry.state === 'failed') return 'failed';
  if (!entry.approved) return 'approve';
  return entry.state === 'unresolved' ? 'unresolved' : 'ready';
}

/** What an agent tells of a turn's usage, in the order in which it is read. */
const kinds = [
  'totalTokens',
  'inputTokens',
  'outputTokens',
  'thoughtTokens',
  'cachedReadTokens',
  'cachedWriteTokens',
] as const;
export type UsageKind = (typeof kinds)[number];

export function usageRows(usage: unknown): { kind: UsageKind; n: number }[] {
  if (typeof usage !== 'object' || usage === null) return [];
  return kinds.flatMap((kind) => {
    const n = (usage as Record<string, unknown>)[kind];
    return typeof n === 'number' ? [{ kind, n }] : [];
  });
}
