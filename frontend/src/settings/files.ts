/** Reports whether a list contains only hosts with optional ports, as the server expects. An empty list is valid. */
export function namesHosts(list: string): boolean {
  return list.split(',').every((host) => !/[/@\s*?#]/.test(host.trim()));
}

/** Parses a limit in MiB; undefined for invalid text. */
export function limitOf(text: string, most: number): number | undefined {
  const limit = /^\s*\d{1,4}\s*$/.test(text) ? Number(text) : 0;
  return limit >= 1 && limit <= most ? limit : undefined;
}
