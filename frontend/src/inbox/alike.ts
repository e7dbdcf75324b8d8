import type { Request, RequestOption } from '../api/records';
import { isObject } from '../content/blocks';
import { allowOnce } from './choose';

// Approvals that ask for the very same: several agents run the same tests. Only what the requests tell themselves counts, and one that tells
// neither its input nor what it would change is like no other: two of one title may do two things.

export interface Alike {
  request: Request;
  allow: RequestOption;
}

/** The same value written the same way, however its fields are ordered. */
function canonical(value: unknown): string {
  if (Array.isArray(value)) return `[${value.map(canonical).join()}]`;
  if (!isObject(value)) return JSON.stringify(value) ?? 'null';
  const fields = Object.keys(value)
    .sort()
    .map((name) => `${JSON.stringify(name)}:${canonical(value[name])}`);
  return `{${fields.join()}}`;
}

/** What it asks for; undefined where that cannot be compared. */
function asked({ kind, choice, clipped, agent, title, tool }: Request): string | undefined {
  if (kind !== 'permission' || choice || clipped || !isObject(tool)) return undefined;
  const { rawInput, content, locations } = tool;
  const says = (value: unknown) =>
    value !== undefined && value !== null && !['{}', '[]'].includes(canonical(value));
  if (!says(rawInput) && !says(content)) return undefined;
  return canonical([
    agent,
    title,
    tool['kind'] ?? null,
    rawInput ?? null,
    content ?? null,
    locations ?? null,
  ]);
}

/** This request and the others that ask for the very same and can be allowed once; none when it is alone. */
export function alike(request: Request | undefined, all: readonly Request[]): readonly Alike[] {
  const wanted = request && asked(request);
  if (wanted === undefined) return [];
  const list = all.flatMap((one) => {
    const allow = allowOnce(one.options);
    return allow && asked(one) === wanted ? [{ request: one, allow }] : [];
  });
  return list.length > 1 && list.some((one) => one.request.id === request?.id) ? list : [];
}
