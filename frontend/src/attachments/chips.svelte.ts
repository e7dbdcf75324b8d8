import type { Client } from '../api/client';
import { ApiError } from '../api/errors';
import { Draft } from '../composer/draft';
import type { Dropped } from '../shell/drops';
import { t } from '../strings/t';
import { baseName, errorText } from '../ui/format';
import { pastePicture } from '../shell/files';
import { upload } from './upload';
import { mostBytes, mostFiles, mostText, pastedName, pathOf, troubleText } from './limits';
import type { Attachment, AttachResult } from '../api/records';

// The files that wait in a composer for the next message. The server stores them with the draft, so they outlive the page; running uploads
// do not.

/** A file that is being attached. */
interface Coming {
  key: number;
  name: string;
  /** Undefined for a file that the server reads itself. */
  size: number | undefined;
  sent: number;
}

/** The reason why a file was not attached. */
interface Trouble {
  key: number;
  name: string;
  text: string;
  /** The path of a link that leads outside. It is followed only when the person says so. */
  follow: string | undefined;
}

type Files = Pick<Client, 'patchSession' | 'call' | 'headers'>;

interface Told {
  id: string;
  attachments?: readonly Attachment[];
  /** Of a session that has not begun, for which the server has no record yet: the directory, and what stores the list of files. */
  begins?: () => string;
  keep?: (ids: readonly string[]) => Promise<void>;
}

let keys = 0;

export class Chips {
  readonly session: string;
  items = $state.raw<readonly Attachment[]>([]);
  coming = $state.raw<readonly Coming[]>([]);
  troubles = $state.raw<readonly Trouble[]>([]);
  /** The error of the last save. */
  fault = $state('');
  /** Resolves when the message with these files was sent. A composer that opens meanwhile uses the same chips. */
  sending: Promise<unknown> = Promise.resolve();
  /** The number of composers that use the chips. */
  holders = 0;

  #client: Client;
  #begins: (() => string) | undefined;
  #draft: Draft;
  /** The last record of each file. */
  #known = new Map<string, Attachment>();
  #cancels = new Map<number, AbortController>();
  /** Files are attached one after the other, so that they keep their order. */
  #chain: Promise<void> = Promise.resolve();

  constructor(session: Told, client: Files) {
    this.session = session.id;
    this.#client = client as Client;
    this.#begins = session.begins;
    this.items = session.attachments ?? [];
    this.#learn(this.items);
    this.#draft = new Draft(
      this.#ids(),
      async (ids, last) => {
        try {
          if (session.keep) await session.keep(listed(ids));
          else await this.#client.patchSession(this.session, { attachments: listed(ids) }, last);
          this.fault = '';
        } catch (thrown) {
          this.fault = errorText(thrown);
          throw thrown;
        }
      },
      ' ',
    );
    this.#draft.show = (ids) =>
      (this.items = listed(ids)
        .map((id) => this.#known.get(id))
        .filter((one) => one !== undefined));
  }

  get shown(): boolean {
    return this.items.length + this.coming.length + this.troubles.length > 0 || this.fault !== '';
  }

  /** Nothing runs and nothing is unsaved, so the chips can be recreated from the session. */
  get settled(): boolean {
    return this.coming.length === 0 && this.troubles.length === 0 && !this.#draft.dirty;
  }

  /** Applies the server's list: new records of the files, and changes of another window. */
  told(attachments: readonly Attachment[]): void {
    this.#learn(attachments);
    const ids = attachments.map((one) => one.id);
    if (this.#draft.told(ids.join(' '))) this.items = attachments;
    else this.items = this.items.map((one) => this.#known.get(one.id) ?? one);
  }

  // Attaching.

  addPaths(paths: readonly string[], follow = false): void {
    const wanted = this.#room(paths, baseName);
    if (wanted.length === 0) return;
    // The paths are sent together, under the name of the first until the answer comes.
    const name = wanted.length === 1 ? baseName(wanted[0] ?? '') : t('attach.coming', { n: wanted.length });
    this.#take(name, undefined, async (signal) => {
      const result = await this.#client.call('POST /client/attachments', {
        body: { paths: wanted, ...this.#where(), ...(follow ? { follow } : {}) },
        signal,
      });
      return { ...result, asked: wanted };
    });
  }

  /** Whose directories count. */
  #where(): { session?: string; cwd?: string } {
    if (!this.#begins) return { session: this.session };
    const cwd = this.#begins();
    return cwd ? { cwd } : {};
  }

  addFiles(files: readonly File[]): void {
    for (const file of this.#room(files, (one) => one.name)) {
      if (file.size > mostBytes) {
        this.#trouble(file.name, new ApiError('attachment.too_large', { limit: mostText }));
        continue;
      }
      this.#take(file.name, file.size, async (signal, progress) => ({
        ...(await upload(this.#client, file, signal, progress)),
        asked: [],
      }));
    }
  }

  /** Attaches a file that make creates, which may take long. */
  addMade(name: string, make: (signal: AbortSignal) => Promise<Blob>): void {
    if (this.#room([name], (one) => one).length === 0) return;
    this.#take(name, undefined, async (signal, progress) => {
      const file = new File([await make(signal)], name, { type: 'text/markdown' });
      if (file.size > mostBytes) throw new ApiError('attachment.too_large', { limit: mostText });
      return { ...(await upload(this.#client, file, signal, progress)), asked: [] };
    });
  }

  /** Attaches the picture on the clipboard through the window's shell. Without a picture nothing happens. */
  addPicture(): void {
    const name = pastedName('image/png', new Date());
    this.#take(name, undefined, async (signal) => {
      const id = await pastePicture(name);
      const items =
        id === undefined
          ? []
          : [await this.#client.call('GET /client/attachments/{id}', { path: { id }, signal })];
      return { items, problems: [], asked: [] };
    });
  }

  drop({ paths, files, directories }: Dropped): void {
    if (paths.length > 0) this.addPaths(paths);
    this.addFiles(files);
    for (const name of directories) this.#trouble(name, new ApiError('attachment.directory_in_browser'));
  }

  /** Returns the files that fit below the limit, and reports the others. */
  #room<T>(all: readonly T[], name: (one: T) => string): readonly T[] {
    const room = Math.max(0, mostFiles - this.items.length - this.coming.length);
    const over = all[room];
    if (over !== undefined)
      this.#trouble(
        name(over),
        new ApiError('attachment.too_many', { limit: String(mostFiles), most: String(mostFiles) }),
      );
    return all.slice(0, room);
  }

  #take(
    name: string,
    size: number | undefined,
    take: (
      signal: AbortSignal,
      progress: (sent: number) => void,
    ) => Promise<AttachResult & { asked: readonly string[] }>,
  ): void {
    const key = ++keys;
    const cancel = new AbortController();
    this.#cancels.set(key, cancel);
    this.coming = [...this.coming, { key, name, size, sent: 0 }];
    const run = async () => {
      try {
        cancel.signal.throwIfAborted();
        const { items, problems, asked } = await take(cancel.signal, (sent) => {
          this.coming = this.coming.map((one) => (one.key === key ? { ...one, sent } : one));
        });
        if (cancel.signal.aborted) return;
        for (const problem of problems)
          this.#trouble(problem.name, new ApiError(problem.code, problem.params), pathOf(problem, asked));
        this.#put(items);
      } catch (thrown) {
        if (!cancel.signal.aborted) this.#trouble(name, thrown);
      } finally {
        this.#cancels.delete(key);
        this.coming = this.coming.filter((one) => one.key !== key);
      }
    };
    this.#chain = this.#chain.then(run);
  }

  cancel(key: number): void {
    this.#cancels.get(key)?.abort();
    this.coming = this.coming.filter((one) => one.key !== key);
  }

  /** Resolves when all running work has ended. */
  async ended(): Promise<void> {
    await this.#chain;
    await this.sending.catch(() => undefined);
  }

  #put(items: readonly Attachment[]): void {
    const have = new Set(this.items.map(same));
    const fresh = items.filter((one) => !have.has(same(one)));
    if (fresh.length === 0) return;
    this.#learn(fresh);
    this.#set([...this.items, ...fresh]);
  }

  #set(items: readonly Attachment[]): void {
    this.items = items;
    this.#draft.type(this.#ids());
    // Files that arrive together are saved together, at the end or after a pause.
    if (this.coming.length <= 1) void this.#draft.flush();
  }

  remove(id: string): void {
    this.#set(this.items.filter((one) => one.id !== id));
  }

  /** The files are being sent with a message. */
  begin(sending: Promise<unknown>): void {
    this.sending = sending;
    this.#draft.begin();
  }

  /** Removes sent files from the draft; files attached meanwhile stay. */
  sent(ids: readonly string[]): void {
    const without = (all: string) =>
      listed(all)
        .filter((id) => !ids.includes(id))
        .join(' ');
    this.troubles = [];
    this.#draft.arrived(without(this.#ids()), without);
  }

  /** The message could not be sent: the files stay. */
  kept(): void {
    this.#draft.kept();
  }

  flush(last = false): Promise<void> {
    return this.#draft.flush(last);
  }

  // Problems.

  dismiss(key: number): void {
    this.troubles = this.troubles.filter((one) => one.key !== key);
  }

  /** Attaches the target of a link that leads outside. */
  follow({ key, follow }: Trouble): void {
    this.dismiss(key);
    if (follow !== undefined) this.addPaths([follow], true);
  }

  #trouble(name: string, thrown: unknown, path?: string): void {
    const asks = thrown instanceof ApiError && thrown.code === 'attachment.link_outside' ? path : undefined;
    const text = troubleText(baseName(name), thrown);
    this.troubles = [
      ...this.troubles.filter((one) => one.text !== text).slice(-9),
      { key: ++keys, name: baseName(name), text, follow: asks },
    ];
  }

  #ids(): string {
    return this.items.map((one) => one.id).join(' ');
  }

  #learn(items: readonly Attachment[]): void {
    for (const one of items) this.#known.set(one.id, { ...this.#known.get(one.id), ...one });
  }
}

/** Returns the ids in a draft of files. */
function listed(ids: string): string[] {
  return ids === '' ? [] : ids.split(' ');
}

/** Returns the identity of a file: the path, so that a path is attached only once, or the id of bytes without a path. */
function same(one: Attachment): string {
  return one.path ?? one.id;
}

const kept = new Map<string, Chips>();

/** Returns the chips of a session: those that were left with running work, otherwise new chips. */
export function chipsOf(session: Told, client: Files): Chips {
  const chips = kept.get(session.id) ?? new Chips(session, client);
  kept.set(session.id, chips);
  chips.holders++;
  return chips;
}

/** Called when a composer was unmounted. Running work goes on. */
export function leaveChips(chips: Chips): void {
  chips.holders--;
  void chips.flush();
  void chips.ended().then(() => {
    if (chips.settled && chips.holders === 0 && kept.get(chips.session) === chips) kept.delete(chips.session);
  });
}
