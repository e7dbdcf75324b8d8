import type { Attachment, NewMember } from '../api/records';
import { client } from '../state/state';
import { store } from '../ui/storage';

// What was written for a conversation that has not begun. No server knows of it, so it is kept by the page, beyond its end.

/** What a person has chosen for it. What is missing is as in the last conversation of the project. */
export interface Choices {
  cwd?: string;
  place?: string;
  agent?: string;
  worktree?: boolean;
  /** The branch or commit that the worktree begins with; undefined for what is checked out. */
  base?: string | undefined;
  directories?: readonly string[];
  /** The agents that get the same message, beside the first one. */
  others?: readonly NewMember[];
}

interface Stored {
  draft: string;
  attachments: readonly string[];
  choices: Choices;
}

const key = 'deskhand.new';

class Written {
  readonly id = 'new';
  draft = $state.raw('');
  attachments = $state.raw<readonly Attachment[]>([]);
  choices = $state.raw<Choices>({});
  /** The directory where it is to begin, for its files. */
  begins = () => this.choices.cwd ?? this.usual;
  /** The directory when none was chosen. */
  usual = '';
  #ids: readonly string[] = [];

  constructor() {
    const { draft = '', attachments = [], choices = {} } = stored();
    this.draft = draft;
    // Choices without a message were left behind, and the project of today counts.
    if (draft || attachments.length > 0) this.choices = choices;
    this.#ids = attachments;
    if (attachments.length > 0) void this.#read(attachments);
  }

  /** Reads the records of the files. A file that the server no longer has is left out. */
  async #read(ids: readonly string[]): Promise<void> {
    const found = await Promise.all(
      ids.map((id) =>
        client.call('GET /client/attachments/{id}', { path: { id } }).catch((): undefined => undefined),
      ),
    );
    if (this.#ids === ids) this.attachments = found.filter((one) => one !== undefined);
  }

  /** Nothing was written or attached. */
  get empty(): boolean {
    return this.draft === '' && this.#ids.length === 0;
  }

  /** Stores the text. */
  write(text: string): void {
    this.draft = text;
    this.#store();
  }

  /** Stores the list of files. */
  keep = (ids: readonly string[]): Promise<void> => {
    this.#ids = ids;
    this.#store();
    return this.#read(ids);
  };

  choose(choices: Choices): void {
    this.choices = { ...this.choices, ...choices };
    this.#store();
  }

  /** Begins in another project, whose last choices count then but for those that are kept. */
  move(cwd: string | undefined, place: string, kept: Choices = {}): void {
    if (cwd === this.choices.cwd && place === this.choices.place) return;
    this.choices = { ...kept, place, ...(cwd === undefined ? {} : { cwd }) };
    this.#store();
  }

  /** Forgets what a conversation has begun with. Text that was written since stays. */
  sent(message: string, ids: readonly string[]): void {
    if (message.startsWith(this.draft)) this.draft = '';
    this.attachments = this.attachments.filter((one) => !ids.includes(one.id));
    this.#ids = this.#ids.filter((id) => !ids.includes(id));
    this.choices = {};
    this.#store();
  }

  #store(): void {
    const { draft, choices } = this;
    if (draft === '' && this.#ids.length === 0 && Object.keys(choices).length === 0)
      localStorage.removeItem(key);
    else store(key, JSON.stringify({ draft, attachments: this.#ids, choices } satisfies Stored));
  }
}

function stored(): Partial<Stored> {
  try {
    return (JSON.parse(localStorage.getItem(key) ?? '{}') ?? {}) as Partial<Stored>;
  } catch {
    return {};
  }
}

export const written = new Written();
