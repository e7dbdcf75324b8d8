/** A line of the palette. */
export interface Action {
  id: string;
  name: string;
  keys: string;
  run: () => void;
}

/** The overlay over the page. */
type Shown =
  | { kind: 'palette'; query: string; list?: { label: string; actions: readonly Action[] } }
  /** The recent sessions. held: releasing the modifier chooses. */
  | { kind: 'recent'; step: 1 | -1; held: boolean }
  | { kind: 'help'; page: string };

export class Overlay {
  shown = $state.raw<Shown | undefined>();
  /** Returns the actions for the slash completion, under their typed names. There are none before the commands are loaded. */
  behindSlash = $state.raw<() => (Action & { title: string })[]>(() => []);
}
