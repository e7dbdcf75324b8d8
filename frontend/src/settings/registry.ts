import type { Settings } from '../api/records';
import { store } from '../ui/storage';

// The registry of agents: the setting has room for its address, or for off, and not for an address that is to count again later.

type Stored = Pick<Settings, 'catalogueUrl'>;

/** What the setting is where no registry is asked. */
export const off = 'off';

const key = 'deskhand.registry';

/** Where the registry is, or was before none was asked; empty = the public one. */
export function addressOf({ catalogueUrl }: Stored): string {
  return catalogueUrl === off ? (localStorage.getItem(key) ?? '') : catalogueUrl;
}

/** Keeps the address for the time when none is asked, in this window or browser. */
export function remember({ catalogueUrl }: Stored): void {
  if (catalogueUrl === '') localStorage.removeItem(key);
  else if (catalogueUrl !== off) store(key, catalogueUrl);
}
