import type { RequestOption } from '../api/records';

// Maps keys to the answers of an approval.

type Choice = { do: 'option'; option: RequestOption } | { do: 'leave' };

export function isReject(option: RequestOption): boolean {
  return option.kind.startsWith('reject');
}

/** Returns the first option that allows once and stores no rule. */
export function allowOnce(options: readonly RequestOption[]): RequestOption | undefined {
  return options.find((option) => option.kind === 'allow_once');
}

/**
 * Returns the choice for a key. A digit takes the option of that number, R the first option that rejects, and A (in the inbox) the first
 * that allows once. Escape never answers.
 */
export function choose(
  key: string,
  options: readonly RequestOption[],
  withAllow = false,
): Choice | undefined {
  if (key === 'Escape') return { do: 'leave' };
  const option = optionOf(key, options, withAllow);
  return option && { do: 'option', option };
}

function optionOf(
  key: string,
  options: readonly RequestOption[],
  withAllow: boolean,
): RequestOption | undefined {
  if (/^[1-9]$/.test(key)) return options[Number(key) - 1];
  if (key === 'r' || key === 'R') return options.find(isReject);
  if (withAllow && key === 'a') return allowOnce(options);
  return undefined;
}
