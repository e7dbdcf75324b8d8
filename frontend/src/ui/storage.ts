/** Keeps what is only handy to have again: where the browser has no room for it, nothing that somebody does comes to grief over that. */
export function store(key: string, value: string): void {
  try {
    localStorage.setItem(key, value);
  } catch {
    // as though it had not been kept
  }
}
