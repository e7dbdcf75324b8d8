import { store } from '../ui/storage';
import { tabs, type PanelAsk, type PanelTab } from './ask';

const shownKey = 'deskhand.panel.shown';
const tabKey = 'deskhand.panel.tab';
const widthKey = 'deskhand.panel.width';
const belowKey = 'deskhand.terminal.below';
const heightKey = 'deskhand.terminal.height';

export const narrowest = 280;
export const lowest = 120;

type TerminalAsk = Extract<PanelAsk, { tab: 'terminal' }>;

/** The terminals at the bottom of the window, where the person has moved them there from the side panel. */
class BottomState {
  /** The terminals are at the bottom, not in the side panel. */
  chosen = $state(localStorage.getItem(belowKey) === 'yes');
  shown = $state(false);
  ask = $state.raw<TerminalAsk>();
  height = $state(Number(localStorage.getItem(heightKey)) || 260);

  choose(chosen: boolean): void {
    this.chosen = chosen;
    store(belowKey, chosen ? 'yes' : 'no');
  }

  resize(height: number): void {
    this.height = Math.max(lowest, Math.round(height));
    store(heightKey, String(this.height));
  }
}

/** The side panel: whether it is open, the current tab, and the request to that tab; and the terminals, which can be at the bottom. */
export class PanelState {
  shown = $state(localStorage.getItem(shownKey) === 'yes');
  tab = $state<PanelTab>(tabs.find((one) => one === localStorage.getItem(tabKey)) ?? 'changes');
  ask = $state.raw<PanelAsk>();
  /** The width in pixels that the person chose; undefined for half of the room. */
  width = $state<number | undefined>(Number(localStorage.getItem(widthKey)) || undefined);
  /** The panel covers the conversation. */
  whole = $state(false);
  readonly bottom = new BottomState();
  /** The tabs of the side panel. */
  readonly tabs = $derived(tabs.filter((tab) => tab !== 'terminal' || !this.bottom.chosen));
  /** Counts the files that other parts of the page have written: after each the Files tab looks again. */
  written = $state(0);

  /** Opens the panel at a tab with a request. */
  open(ask: PanelAsk): void {
    if (ask.tab === 'terminal' && this.bottom.chosen) {
      this.bottom.ask = ask;
      this.bottom.shown = true;
      return;
    }
    this.ask = ask;
    this.#choose(ask.tab);
    this.#set(true);
  }

  /** Shows a tab. Without a tab, or when the tab is shown already, toggle closes or opens the panel. */
  toggle(tab?: PanelTab): void {
    if (tab === 'terminal' && this.bottom.chosen) this.bottom.shown = !this.bottom.shown;
    else if (tab && !(this.shown && this.tab === tab)) {
      this.#choose(tab);
      this.#set(true);
    } else this.#set(!this.shown);
  }

  close(): void {
    this.#set(false);
  }

  /** Moves the terminals from the side panel to the bottom, or back, and shows them there. */
  moveTerminals(): void {
    this.bottom.choose(!this.bottom.chosen);
    this.bottom.shown = this.bottom.chosen;
    if (this.bottom.chosen) {
      this.#choose('changes');
      this.#set(false);
    } else this.open({ tab: 'terminal' });
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
