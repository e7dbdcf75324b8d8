import { store } from '../ui/storage';
import { tabs, type PanelAsk, type PanelTab } from './ask';

const shownKey = 'deskhand.panel.shown';
const tabKey = 'deskhand.panel.tab';
const widthKey = 'deskhand.panel.width';

export const narrowest = 280;

/** The side panel: whether it is open, the current tab, and the request to that tab. */
export class PanelState {
  shown = $state(localStorage.getItem(shownKey) === 'yes');
  tab = $state<PanelTab>(tabs.find((one) => one === localStorage.getItem(tabKey)) ?? 'changes');
  ask = $state.raw<PanelAsk>();
  /** The width in pixels that the person chose; undefined for half of the room. */
  width = $state<number | undefined>(Number(localStorage.getItem(widthKey)) || undefined);
  /** The panel covers the conversation. */
  whole = $state(false);
  /** Counts the files that other parts of the page have written: after each the Files tab looks again. */
  written = $state(0);

  /** Opens the panel at a tab with a request. */
  open(ask: PanelAsk): void {
    this.ask = ask;
    this.#choose(ask.tab);
    this.#set(true);
  }

  /** Shows a tab. Without a tab, or when the tab is shown already, toggle closes or opens the panel. */
  toggle(tab?: PanelTab): void {
    if (tab && !(this.shown && this.tab === tab)) {
      this.#choose(tab);
      this.#set(true);
    } else this.#set(!this.shown);
  }

  close(): void {
    this.#set(false);
  }

  /** Without a width the panel takes half of the room. */
  resize(width?: number): void {
    this.width = width === undefined ? undefined : Math.max(narrowest, Math.round(width));
    store(widthKey, String(this.width ?? ''));
  }

  #choose(tab: PanelTab): void {
    this.tab = tab;
    store(tabKey, tab);
  }

  #set(shown: boolean): void {
    this.shown = shown;
    if (!shown) this.whole = false;
    store(shownKey, shown ? 'yes' : 'no');
  }
}
