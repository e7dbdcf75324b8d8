import type { Request, RequestOption } from '../api/records';
import { isObject } from '../content/blocks';
import { allowOnce } from './choose';

// Finds approvals that ask for the same action, since several agents may run the same tests. Only the requests' own fields are compared. A
// request with neither input nor change is never alike: two requests of the same title may differ.

export interface Alike {
  request: Request;
  allow: RequestOption;
}

/** Returns a value as JSON with sorted keys, so that equal values give equal texts. */
function canonical(value: unknown): string {
  if (Array.isArray(value)) return `[${value.map(canonical).join()}]`;
  if (!isObject(value)) return JSON.stringify(value) ?? 'null';
  const fields = Object.keys(value)
    .sort()
    .map((name) => `${JSON.stringify(name)}:${canonical(value[name])}`);
  return `{${fields.join()}}`;
}

/** Returns a request's action as a text to compare; undefined where a comparison is not possible. */
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

/** Returns this request and the others with the same action that can be allowed once; an empty list when there is no other. */
export function alike(request: Request | undefined, all: readonly Request[]): readonly Alike[] {
  const wanted = request && asked(request);
  if (wanted === undefined) return [];
  const list = all.flatMap((one) => {
    const allow = allowOnce(one.options);
    return allow && asked(one) === wanted ? [{ request: one, allow }] : [];
  });
  return list.length > 1 && list.some((one) => one.request.id === request?.id) ? list : [];
}
