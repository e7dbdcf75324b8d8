import type { Settings } from '../api/records';
import { store } from '../ui/storage';

// The registry of agents. The setting stores either an address or "off", so the page remembers the address for the time after "off".

type Stored = Pick<Settings, 'catalogueUrl'>;

/** The setting's value when no registry is used. */
export const off = 'off';

const key = 'deskhand.registry';

/** Returns the address of the registry, or the last address before "off"; empty for the public registry. */
export function addressOf({ catalogueUrl }: Stored): string {
  return catalogueUrl === off ? (localStorage.getItem(key) ?? '') : catalogueUrl;
}

/** Remembers the address in this window or browser. */
export function remember({ catalogueUrl }: Stored): void {
  if (catalogueUrl === '') localStorage.removeItem(key);
  else if (catalogueUrl !== off) store(key, catalogueUrl);
}
