import { tick, untrack } from 'svelte';
import { navigation, toasts } from '../state/state';
import { t } from '../strings/t';
import { left } from '../ui/unsaved.svelte';
import type { Listing, Removals } from './listing.svelte';
import '../strings/equip';

interface Item {
  name: string;
  approved: boolean;
  entry: Record<string, unknown>;
}

/** What is written in an editor. */
export interface Words<T> {
  /** What is edited, as it was shown; none for a new one. */
  item: T | undefined;
  name: string;
  entry: Record<string, unknown>;
  text: string;
}

type Remove = (directory: string, name: string, last: boolean) => Promise<void>;

/** What is done with the entries of a listing: one is edited at a time, and any can be removed, which can be taken back for a while. */
export class Editing<T extends Item> {
  /** What is edited; without an item it is a new one. */
  now = $state.raw<{ item?: T } | undefined>();
  /** The button that adds one. */
  add = $state<HTMLButtonElement>();
  /** Whose editor has just closed. */
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
    // Where something was written and the screen left, the editor is open again.
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

  /** Opens the editor: of what something is left of first, which would else stand in that of another. */
  open(item?: T): void {
    const words = left<Words<T>>(this.#form);
    const of = words ? words.item : item;
    this.now = of ? { item: of } : {};
    this.#back = undefined;
  }

  /** Closes the editor; the focus goes to the row of that name, or to the button that adds one. */
  async close(name = this.now?.item?.name): Promise<void> {
    this.now = undefined;
    this.#back = name;
    await tick();
    if (name === undefined) this.add?.focus();
  }

  /** A stored one is not to be removed any more by what was asked for before. */
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

  /** What the row of an entry is given. */
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

  /** What the editor of an entry is given, or that of a new one. */
  editor(item: T | undefined) {
    const form = this.#form;
    const { directory } = this.#listing;
    return {
      name: item?.name ?? '',
      stored: item?.entry,
      taken: this.#listing.items.map(({ name }) => name),
      warning: item && !item.approved ? t('equip.approves') : undefined,
      saved: (stored: T) => {
        this.#listing.put(stored);
        toasts.announce(t('equip.saved', { name: stored.name }));
        void this.close(stored.name);
      },
      keep: { form, item },
      close: (back?: () => void) => {
        void this.close();
        if (!back) return;
        toasts.show({
          text: t('equip.given_up'),
          tone: 'info',
          undo: () => {
            if (left(form)) return; // something else was written since
            back();
            // The screen is made anew, with what is left: this one may be another by now.
            if (navigation.view.name === this.#kind) navigation.show({ name: this.#kind, directory });
          },
        });
      },
    };
  }
}
