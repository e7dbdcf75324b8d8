import type { PullRequestStatus } from '../api/records';

// How the hosts of pull requests are reached, as the settings have it: HOST=gh, HOST=glab or HOST=page, with commas between.

export type Use = NonNullable<PullRequestStatus['use']>;

export interface Reached {
  host: string;
  use: Use;
}

const uses: readonly Use[] = ['gh', 'glab', 'page'];

/** The ways to reach a host. The programs take no name with a port. */
export function usesOf(host: string): readonly Use[] {
  return host.includes(':') ? ['page'] : uses;
}

export function readForges(setting: string): Reached[] {
  return setting.split(',').flatMap((part) => {
    const [host = '', named] = part.trim().split('=');
    const use = uses.find((one) => one === named);
    return host && use ? [{ host, use }] : [];
  });
}

export function writeForges(list: readonly Reached[]): string {
  return list.map(({ host, use }) => `${host}=${use}`).join(', ');
}
