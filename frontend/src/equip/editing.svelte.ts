import { tick, untrack } from 'svelte';
import { navigation, toasts } from '../state/state';
import { t } from '../strings/t';
import { left, type Restore } from '../ui/unsaved.svelte';
import type { Listing, Removals } from './listing.svelte';
import '../strings/equip';

export interface Item {
  name: string;
  approved: boolean;
  entry: Record<string, unknown>;
  enabled?: boolean;
  executable?: unknown;
}

/** The unsaved text of an editor. */
export interface Words<T> {
  /** The edited item as it was shown; undefined for a new entry. */
  item: T | undefined;
  name: string;
  entry: Record<string, unknown>;
  text: string;
}

type Remove = (directory: string, name: string, last: boolean) => Promise<void>;

/** Editing and removing the entries of a listing. Only one entry is edited at a time; a removal can be undone for a while. */
export class Editing<T extends Item> {
  /** The editor's item; without an item a new entry, which may begin as a copy of a template of the same name. */
  now = $state.raw<{ item?: T; template?: T } | undefined>();
  /** The button that adds an entry. */
  add = $state<HTMLButtonElement>();
  /** The name of the entry whose editor has just closed. */
  #back = $state<string | undefined>();
  #listing: Listing<T>;
  #removals: Removals;
  #remove: Remove;
  #kind: 'mcp' | 'skills';

  constructor(kind: 'mcp' | 'skills', listing: Listing<T>, removals: Removals, remove: Remove) {
    this.#kind = kind;
    this.#listing = listing;
    this.#removals = removals;
    this.#remove = remove;
    // Opens the editor again where the screen was left with unsaved text.
    $effect(() => {
      void listing.directory;
      untrack(() => this.#reopen());
    });
  }

  get #form(): string {
    return `${this.#kind} ${this.#listing.directory}`;
  }

  #reopen(): void {
    const words = left<Words<T>>(this.#form);
    if (words && !this.now) this.open(words.item);
  }

  /** Opens the editor. An entry with unsaved text comes first, because its text would otherwise appear in another entry's editor. */
  open(item?: T): void {
    const words = left<Words<T>>(this.#form);
    const of = words ? words.item : item;
    this.now = of ? { item: of } : {};
    this.#back = undefined;
  }

  /** Opens the editor of a new entry that takes the place of another scope's entry. */
  override(template: T): void {
    this.open();
    if (!this.now?.item && !left<Words<T>>(this.#form)) this.now = { template };
  }

  /** Closes the editor. The focus goes to the row of that name, or to the button that adds an entry. */
  async close(name = this.now?.item?.name): Promise<void> {
    this.now = undefined;
    this.#back = name;
    await tick();
    if (name === undefined) this.add?.focus();
  }

  /** Cancels a waiting removal of an entry that was stored again. */
  keep(name: string): void {
    this.#removals.undo(this.#listing.directory, name);
  }

  remove({ name }: T): void {
    const { directory } = this.#listing;
    this.#removals.add(directory, name, async (last) => {
      try {
        await this.#remove(directory, name, last);
      } catch (thrown) {
        toasts.fail(thrown);
      }
      if (this.#listing.directory === directory) await this.#listing.load();
    });
    toasts.show({
      text: t('equip.deleted', { name }),
      tone: 'info',
      undo: () => this.#removals.undo(directory, name),
    });
    void tick().then(() => this.add?.focus());
  }

  /** Returns the props of an entry's row. */
  row(item: T) {
    return {
      directory: this.#listing.directory,
      focused: this.#back === item.name,
      edit: () => this.open(item),
      remove: () => this.remove(item),
      put: (newer: T) => this.#listing.put(newer),
      reload: () => this.#listing.load(),
    };
  }

  /** Returns the props of an entry's editor, or of a new entry's. */
  editor(item: T | undefined) {
    const form = this.#form;
    const { directory } = this.#listing;
    return {
      name: item?.name ?? this.now?.template?.name ?? '',
      stored: item?.entry,
      taken: this.#listing.items.map(({ name }) => name),
      warning: item && !item.approved ? t('equip.approves') : undefined,
      saved: (stored: T) => {
        this.#listing.put(stored);
        toasts.announce(t('equip.saved', { name: stored.name }));
        void this.close(stored.name);
      },
      keep: { form, item },
      close: (discarded?: Restore) => {
        void this.close();
        toasts.discarded(discarded, () => {
          // Shows the screen again with the restored text, because this instance may be gone.
          if (navigation.view.name === 'settings' && navigation.view.at === this.#kind)
            navigation.show({ name: 'settings', at: this.#kind, directory });
        });
      },
    };
  }
}
