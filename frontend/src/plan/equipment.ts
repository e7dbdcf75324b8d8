import type { McpServer, SkillEntry } from '../api/records';
import type { Given } from '../api/records';

// Compares the servers and skills of a directory with those that a session's agent was given.

export type Use = 'given' | 'own' | 'next' | 'approve' | 'off' | 'changed';

interface ServerInUse {
  name: string;
  transport: string;
  use: Use;
}

/**
 * Returns the MCP servers of a session: Deskhand's own, the directory's, then servers that the agent was given and the file has no more.
 */
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

type SkillUse = 'ready' | 'approve' | 'unresolved' | 'failed';

export function useOf(entry: SkillEntry): SkillUse {
  if (entry.state === 'failed') return 'failed';
  if (!entry.approved) return 'approve';
  return entry.state === 'unresolved' ? 'unresolved' : 'ready';
}

/** The fields of a turn's usage in display order. */
const kinds = [
  'totalTokens',
  'inputTokens',
  'outputTokens',
  'thoughtTokens',
  'cachedReadTokens',
  'cachedWriteTokens',
] as const;
type UsageKind = (typeof kinds)[number];

export function usageRows(usage: unknown): { kind: UsageKind; n: number }[] {
  if (typeof usage !== 'object' || usage === null) return [];
  return kinds.flatMap((kind) => {
    const n = (usage as Record<string, unknown>)[kind];
    return typeof n === 'number' ? [{ kind, n }] : [];
  });
}
