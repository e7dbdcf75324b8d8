import type { PullRequestStatus } from '../api/records';

// How the hosts of pull requests are reached, as the settings have it: HOST=gh, HOST=glab or HOST=page, with commas between.

export type Use = NonNullable<PullRequestStatus['use']>;

export interface Reached {
  host: string;
  use: Use;
}

export const uses: readonly Use[] = ['gh', 'glab', 'page'];

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
