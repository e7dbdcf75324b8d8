import type { Client } from '../api/client';
import type { Session } from '../api/records';
import { inDirectory } from '../api/scope';
import { tilde, titleOf } from '../ui/format';
import { best } from '../ui/match';

// The names for mentions other than files: sessions, and skills of the directory.

export interface Named {
  /** The session's id, or the skill's name. */
  id: string;
  name: string;
  /** The session's directory, or the skill's description. */
  about: string;
}

const most = 50;

/** Returns the other sessions that match, the newest first. */
export function conversationsFor(
  typed: string,
  sessions: Iterable<Session>,
  own: string,
  home?: string,
): readonly Named[] {
  const all = [...sessions]
    .filter((one) => one.id !== own)
    .sort((a, b) => (a.updatedAt < b.updatedAt ? 1 : -1))
    .map((one) => ({ id: one.id, name: titleOf(one), about: tilde(one.cwd, home), text: titleOf(one) }));
  return best(all, typed, most);
}

type Reads = Pick<Client, 'skillEntries'>;

/** The approved skills of a directory, read again at each begin of a mention. */
export class Skills {
  #client: Reads;
  #directory: string | undefined;
  #read: Promise<readonly Named[]> | undefined;

  constructor(client: Reads, directory: string | undefined) {
    this.#client = client;
    this.#directory = directory;
  }

  async matching(typed: string): Promise<readonly Named[]> {
    this.#read ??= this.#ask();
    const all = await this.#read;
    return best(
      all.map((one) => ({ ...one, text: one.name })),
      typed,
      most,
    );
  }

  async #ask(): Promise<readonly Named[]> {
    if (this.#directory === undefined) return [];
    try {
      const { items } = await inDirectory(
        this.#client.skillEntries,
        this.#directory,
        AbortSignal.timeout(10_000),
      );
      return items
        .filter((entry) => entry.approved)
        .flatMap((entry) => entry.skills)
        .filter((skill) => !skill.problem)
        .map(({ name, description }) => ({ id: name, name, about: description }));
    } catch {
      return []; // the list is empty; the skills screen shows the error
    }
  }
}
