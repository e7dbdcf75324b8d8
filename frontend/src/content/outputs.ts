import { getContext, setContext } from 'svelte';
import type { Client } from '../api/client';
import type { OutputMatches, OutputPage } from '../api/records';

// The whole of an output that is shown without its middle. The component that shows the transcript provides the reading.

/** An output of any length, read in pages. */
export interface Source {
  /** Returns the page that begins at an offset that another page or a match told, or at 0. */
  page: (offset: number) => Promise<OutputPage>;
  find: (query: string) => Promise<OutputMatches>;
  /** Saves the whole output as a file and returns its name, or undefined when the person cancels; absent where there is no way to. */
  save?: (() => Promise<string | undefined>) | undefined;
}

/** Where bytes are left out of a text. */
export interface Gap {
  /** The length of the head. */
  at: number;
  bytes: number;
  lines: number;
}

/** Returns the source of an output of an entry. `at` is the JSON pointer of a text in the entry's tool call, or empty for a program. */
type Open = (entry: string, at: string) => Source;

const key = Symbol('outputs');

export function provideOutputs(open: Open): void {
  setContext(key, open);
}

/** Returns undefined outside of a transcript. */
export function outputs(): Open | undefined {
  return getContext<Open | undefined>(key);
}

const limit = 32_768;

/** Returns the source of an output that the server reads from the journal. */
export function outputOf(client: Client, session: string, entry: string, at: string): Source {
  const path = { id: session, entry };
  const place = at === '' ? {} : { at };
  return {
    page: (offset) =>
      client.call('GET /client/sessions/{id}/entries/{entry}/output', {
        path,
        query: { ...place, offset, limit },
      }),
    find: (q) =>
      client.call('GET /client/sessions/{id}/entries/{entry}/output/matches', {
        path,
        query: { ...place, q },
      }),
    save: async () => {
      const { saveOutput } = await import('./saveoutput');
      return saveOutput(client, path, place);
    },
  };
}
