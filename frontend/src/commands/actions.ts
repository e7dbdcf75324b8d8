import { tick } from 'svelte';
import type { Action } from '../state/overlay.svelte';
import { catalogue, conversations, lifecycle, navigation, overlay, server, toasts } from '../state/state';
import '../strings/keyboard';
import type { ConfigOption, Session } from '../api/records';
import type { PanelTab } from '../state/ask';
import { toPrompt } from '../session/prompts';
import { groups } from '../sidebar/groups';
import { t } from '../strings/t';
import { titleOf } from '../ui/format';
import { keysOf, type CommandId } from '../ui/keys';
import { askToDelete } from '../worktree/ask';
import type { Frame } from './frame';
import { commandGroups, nameOf } from './groups';
import { stash } from './stash.svelte';

// The action of each command, and the condition under which it is available.

interface Act {
  run: (frame: Frame, held: boolean) => void;
  /** Reports whether the command is available now. */
  can?: () => boolean;
  /** Not listed while the query is empty. */
  rare?: true;
}

const here = () => navigation.current;
const inSession = () => here() !== undefined;
const writable = () => inSession() && !server.readOnly;

/** Returns an action on the active session. */
function about(run: (session: Session) => void, can: (session: Session) => boolean = () => true): Act {
  const session = () => {
    const one = here();
    return one && can(one) ? one : undefined;
  };
  return {
    run: () => {
      const one = session();
      if (one) run(one);
    },
    can: () => session() !== undefined,
  };
}

const changes = (run: (session: Session) => void, can: (session: Session) => boolean = () => true) =>
  about(run, (session) => !server.readOnly && can(session));

function nth(n: number): Act {
  const found = () =>
    groups(conversations.ordered, '', conversations.showArchived, titleOf).flatMap((group) => group.sessions)[
      n - 1
    ];
  return {
    run: () => {
      const session = found();
      if (session) navigation.show({ name: 'session', id: session.id });
    },
    can: () => found() !== undefined,
    rare: true,
  };
}

// The session options that the agent offers.

type Choice = 'mode' | 'model' | 'effort';

function optionOf(session: Session, choice: Choice): ConfigOption | undefined {
  const wanted = choice === 'effort' ? /effort|thought|reasoning/i : new RegExp(`^${choice}$`, 'i');
  return (
    session.configOptions.find((option) => wanted.test(option.category ?? '')) ??
    session.configOptions.find((option) => wanted.test(option.id))
  );
}

function choose(choice: Choice): Act {
  return {
    run: () => {
      const session = here();
      if (!session) return;
      const option = optionOf(session, choice);
      if (!option)
        toasts.show({ text: t(`keyboard.no_${choice}`, { agent: session.agentName }), tone: 'info' });
      else if (option.type === 'boolean') set(session, option, !option.checked);
      else if (choice === 'mode') next(session, option);
      else list(session, option);
    },
    can: writable,
  };
}

function set(session: Session, option: ConfigOption, value: string | boolean): void {
  const name =
    option.choices?.find((one) => one.value === value)?.name ??
    (value ? t('keyboard.on') : t('keyboard.off'));
  void conversations.configure(session.id, option.id, value).then((done) => {
    if (done) toasts.announce(t('keyboard.chosen', { option: option.name, name }));
  });
}

/** Returns the value after the current one. */
export function after(option: ConfigOption): string | undefined {
  const choices = option.choices ?? [];
  const at = choices.findIndex((one) => one.value === option.value);
  return choices[(at + 1) % choices.length]?.value;
}

function next(session: Session, option: ConfigOption): void {
  const value = after(option);
  if (value !== undefined) set(session, option, value);
}

function list(session: Session, option: ConfigOption): void {
  const actions = (option.choices ?? []).map((one): Action => ({
    id: one.value,
    name: one.name,
    keys: one.value === option.value ? t('keyboard.now') : '',
    run: () => set(session, option, one.value),
  }));
  overlay.shown = { kind: 'palette', query: '', list: { label: option.name, actions } };
}

function palette(query: string): Act {
  return {
    run: () => {
      const { shown } = overlay;
      overlay.shown =
        shown?.kind === 'palette' && !shown.list && query === '' ? undefined : { kind: 'palette', query };
    },
  };
}

/** Shows or hides the sidebar. When the focus was inside, the composer gets it. */
function sidebar(frame: Frame): void {
  const held = document.activeElement?.closest('.side');
  frame.sidebar();
  if (held) frame.conversation()?.focus();
}

/**
 * Shows or hides the side panel. When the focused element disappears, the panel gets the focus, or the composer where the panel disappears
 * too.
 */
function panel(tab?: PanelTab): Act {
  return {
    run: (frame) => {
      const held = document.activeElement?.closest<HTMLElement>('aside.panel, aside.bottom');
      navigation.panel.toggle(tab);
      void tick().then(() => {
        if (!held || document.activeElement !== document.body) return;
        if (held.isConnected) held.focus();
        else frame.conversation()?.focus();
      });
    },
    can: inSession,
  };
}

/** Presses a button in a turn's footer: the focused footer, otherwise the last. */
function pressInFooter(command: string): void {
  const pane = document.querySelector('.pane.active') ?? document; // the active pane, where there are several
  const all = [...pane.querySelectorAll<HTMLElement>(`[data-row=footer] [data-command="${command}"]`)];
  const focused = document.activeElement?.closest('[data-row=footer]');
  const button = focused ? all.find((one) => focused.contains(one)) : all.at(-1);
  if (button) button.click();
  else toasts.show({ text: t('keyboard.no_undo'), tone: 'info' });
}

const acts: Record<CommandId, Act> = {
  palette: palette(''),
  quickOpen: palette('@'),
  help: { run: () => (overlay.shown = { kind: 'help', page: 'keys' }) },
  new: { run: () => navigation.begin(), can: () => !server.readOnly },
  newIn: { run: () => navigation.show({ name: 'new', choose: true }), can: () => !server.readOnly },
  search: { run: (frame) => navigation.search(frame.conversation()?.said()?.seenAt()?.seq) },
  find: { run: (frame) => void frame.conversation()?.openFind(), can: inSession },
  inbox: { run: () => navigation.show({ name: 'inbox' }) },
  recent: { run: (_, held) => (overlay.shown = { kind: 'recent', step: 1, held }) },
  recentBack: { run: (_, held) => (overlay.shown = { kind: 'recent', step: -1, held }), rare: true },
  nth1: nth(1),
  nth2: nth(2),
  nth3: nth(3),
  nth4: nth(4),
  nth5: nth(5),
  nth6: nth(6),
  nth7: nth(7),
  nth8: nth(8),
  nth9: nth(9),
  sidebar: { run: sidebar },
  panel: panel(),
  changes: panel('changes'),
  files: panel('files'),
  terminal: panel('terminal'),
  plan: panel('plan'),
  inspector: panel('inspector'),
  newTerminal: { run: () => navigation.panel.open({ tab: 'terminal', fresh: true }), can: inSession },
  split: { run: () => navigation.panes.split() },
  paneLeft: { run: () => navigation.panes.step('left'), can: split, rare: true },
  paneRight: { run: () => navigation.panes.step('right'), can: split, rare: true },
  paneUp: { run: () => navigation.panes.step('up'), can: split, rare: true },
  paneDown: { run: () => navigation.panes.step('down'), can: split, rare: true },
  closePane: { run: closePane, can: () => navigation.panes.list.length > 0 },
  nextRegion: { run: (frame) => frame.region(1), rare: true },
  previousRegion: { run: (frame) => frame.region(-1), rare: true },
  band: { run: (frame) => frame.conversation()?.focusBand(), can: inSession },
  stop: { run: (frame) => frame.conversation()?.stop(), can: () => here()?.turn !== undefined },
  mode: choose('mode'),
  model: choose('model'),
  effort: choose('effort'),
  send: { run: (frame) => frame.conversation()?.writing()?.submit(false), can: writable, rare: true },
  sendOther: { run: (frame) => frame.conversation()?.writing()?.submit(true), can: writable, rare: true },
  newline: { run: (frame) => frame.conversation()?.writing()?.newline(), can: writable, rare: true },
  recall: { run: (frame) => frame.conversation()?.writing()?.recall(-1), can: writable, rare: true },
  stash: { run: (frame) => stash(frame.conversation()?.writing(), here()?.id), can: writable },
  attach: { run: (frame) => void frame.conversation()?.writing()?.pick(), can: writable },
  previousPrompt: { run: (frame) => void toPrompt(frame.conversation()?.said(), -1), can: inSession },
  nextPrompt: { run: (frame) => void toPrompt(frame.conversation()?.said(), 1), can: inSession },
  tail: { run: (frame) => void frame.conversation()?.said()?.tail(), can: inSession },
  undo: { run: () => toasts.undo(), can: () => toasts.list.some((toast) => toast.undo), rare: true },
  undoTurn: { run: () => pressInFooter('undoTurn'), can: writable },
  doctor: about(({ agent }) => navigation.show({ name: 'settings', at: 'agents', agent })),
  restart: changes(({ id }) => void conversations.restart(id)),
  agents: {
    run: () =>
      navigation.show({ name: 'settings', at: 'agents', ...(here() ? { agent: here()?.agent ?? '' } : {}) }),
  },
  mcp: { run: () => navigation.show({ name: 'settings', at: 'mcp', ...inWorkspace() }) },
  skills: { run: () => navigation.show({ name: 'settings', at: 'skills', ...inWorkspace() }) },
  import: { run: () => navigation.show({ name: 'import' }), can: () => !server.readOnly },
  settings: { run: () => navigation.show({ name: 'settings' }) },
  keyboard: { run: () => navigation.show({ name: 'settings', at: 'keyboard' }) },
  pin: changes(({ id, pinned }) => void conversations.patch(id, { pinned: !pinned })),
  unread: changes(({ id, unread }) => void conversations.patch(id, { unread: !unread })),
  archive: changes((session) => void lifecycle.archive(session)),
  delete: changes((session) => void askToDelete(session)),
  fork: changes(
    (session) => void lifecycle.fork(session),
    (session) => session.offers.includes('fork'),
  ),
  relink: changes(
    (session) => (navigation.relinking = session.workspace),
    (session) => session.workspace.missing === true,
  ),
  attached: about(({ id }) => (navigation.filesOf = id)),
  copyId: about((session) => void lifecycle.copyId(session)),
  exportMd: about((session) => void lifecycle.export(session, 'md')),
  exportJson: about((session) => void lifecycle.export(session, 'json')),
  exportRecording: about((session) => void lifecycle.export(session, 'recording')),
};

function inWorkspace(): { directory?: string } {
  const session = here();
  return session ? { directory: session.workspace.path } : {};
}

function split(): boolean {
  return navigation.view.name === 'session' && navigation.panes.list.length > 1;
}

/** Closes the pane. On a screen without panes the command returns to the panes. */
function closePane(): void {
  const pane = navigation.panes.current;
  if (navigation.view.name === 'session') navigation.panes.close();
  else if (pane) navigation.show({ name: 'session', id: pane.session });
}

/** Closes the overlay, drawer or panel over the page. It reports whether there was any. */
export function uncover(frame: Frame): boolean {
  if (document.querySelector('dialog[open]')) return false; // a dialog handles its own keys
  if (document.querySelector('.drawer')) sidebar(frame);
  else if (document.querySelector('.panel.over')) navigation.panel.close();
  else return false;
  return true;
}

export function act(id: CommandId, frame: Frame, held: boolean): void {
  const { can, run } = acts[id];
  if (!can || can()) run(frame, held);
}

function nameNow(id: CommandId): string {
  const session = here();
  if (id === 'archive' && session?.archivedAt) return t('command.unarchive');
  if (id === 'pin' && session?.pinned) return t('command.unpin');
  if (id === 'unread' && session?.unread) return t('command.read');
  return nameOf(id);
}

// Commands about sessions come before commands about the window.
const inPalette = commandGroups()
  .toSorted((a, b) => Number(a.id === 'window') - Number(b.id === 'window'))
  .flatMap((group) => group.commands);

/** Returns the available actions for the palette. With seldom, rarely used actions are included. */
export function actionsNow(frame: Frame, seldom: boolean): Action[] {
  const found = inPalette.filter(
    (id) => id !== 'palette' && (seldom || !acts[id].rare) && (acts[id].can?.() ?? true),
  );
  const list = found.map((id): Action => ({
    id,
    name: nameNow(id),
    keys: keysOf(id),
    run: () => acts[id].run(frame, false),
  }));
  const session = here();
  if (!session || server.readOnly) return list;
  for (const agent of catalogue.agents) {
    if (agent.id === session.agent || agent.state !== 'ready') continue;
    list.push({
      id: `continue.${agent.id}`,
      name: t('command.continue', { agent: agent.name }),
      keys: '',
      run: () => void lifecycle.continueWith(session, agent.id),
    });
  }
  return list;
}

/** Returns the same actions for the slash completion, under their typed names. */
export function behindSlash(frame: Frame): (Action & { title: string })[] {
  return actionsNow(frame, false).map((one) => ({
    ...one,
    name: one.id.replaceAll('.', '-').replaceAll(/[A-Z]/g, (letter) => `-${letter.toLowerCase()}`),
    title: one.name,
  }));
}
