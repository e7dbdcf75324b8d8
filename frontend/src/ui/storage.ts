/** Stores a value that is merely convenient to have. A full storage causes no error. */
export function store(key: string, value: string): void {
  try {
    localStorage.setItem(key, value);
  } catch {
    // the value is not stored
  }
}
