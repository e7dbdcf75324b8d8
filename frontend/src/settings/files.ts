/** Whether a list names hosts alone, as the server takes it: nothing else of an address but a port. Nothing at all names none. */
export function namesHosts(list: string): boolean {
  return list.split(',').every((host) => !/[/@\s*?#]/.test(host.trim()));
}

/** A limit that was written, in MiB; undefined where it is none. */
export function limitOf(text: string, most: number): number | undefined {
  const limit = /^\s*\d{1,4}\s*$/.test(text) ? Number(text) : 0;
  return limit >= 1 && limit <= most ? limit : undefined;
}
