// Moves through a list of options by the keyboard, for every picker.

/** Returns the index that a key leads to, or undefined for other keys. The indices do not count headings. */
export function move(key: string, index: number, length: number): number | undefined {
  if (length === 0) return undefined;
  switch (key) {
    case 'ArrowDown':
      return Math.min(length - 1, index + 1);
    case 'ArrowUp':
      return Math.max(0, index < 0 ? length - 1 : index - 1);
    case 'Home':
    case 'PageUp':
      return 0;
    case 'End':
    case 'PageDown':
      return length - 1;
    default:
      return undefined;
  }
}

const forgetAfter = 700;

/** Finds the first option that begins with the typed letters. */
export class TypeAhead {
  #typed = '';
  #at = 0;

  find(key: string, names: readonly string[], from: number, now: number): number | undefined {
    if (key.length !== 1 || key === ' ') return undefined;
    this.#typed = now - this.#at > forgetAfter ? key : this.#typed + key;
    this.#at = now;
    const wanted = this.#typed.toLowerCase();
    // The same letter again goes to the next option.
    const start = this.#typed.length === 1 ? from + 1 : Math.max(0, from);
    for (let step = 0; step < names.length; step++) {
      const index = (start + step) % names.length;
      if (names[index]?.toLowerCase().startsWith(wanted)) return index;
    }
    return undefined;
  }
}
