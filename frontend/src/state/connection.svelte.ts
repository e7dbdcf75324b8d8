import type { DiscordState } from '../api/records';
import { asApiError, isRefused, type ApiError } from '../api/errors';
import { Feed } from '../api/events';
import { FrameBatch } from '../api/frame';
import type { Client } from '../api/client';
import type { Site } from '../api/places';
import type {
  Agent,
  Comparison,
  Event,
  InstallProgress,
  Login,
  ProcessSum,
  Request,
  Rule,
  Session,
  Settings,
  StorageState,
  Verification,
} from '../api/records';
import { t } from '../strings/t';
import { takeKeyboard, type Keyboard } from '../ui/keys';
import type { Catalogue } from './catalogue.svelte';
import type { Comparisons } from './comparisons.svelte';
import type { Conversations } from './conversations.svelte';
import type { Inbox } from './inbox.svelte';
import type { Logins } from './logins.svelte';
import type { Machine } from './machine.svelte';
import type { Navigation } from './navigation.svelte';
import type { Preferences } from './preferences.svelte';
import type { Remotes } from './remotes.svelte';
import type { Rules } from './rules.svelte';
import type { Server } from './server.svelte';
import type { Toasts } from './toasts.svelte';
import type { Transcripts } from './transcripts';

type Link = 'connecting' | 'live' | 'reconnecting' | 'signed_out';

/** The classes that the feed fills. */
interface Receivers {
  client: Client;
  toasts: Toasts;
  server: Server;
  machine: Machine;
  preferences: Preferences;
  remotes: Remotes;
  rules: Rules;
  catalogue: Catalogue;
  comparisons: Comparisons;
  logins: Logins;
  inbox: Inbox;
  conversations: Conversations;
  transcripts: Transcripts;
  navigation: Navigation;
}

/**
 * The feed of the server: snapshots first, then events, each handed to the class that holds its records. After a gap in the feed the
 * snapshots are read again.
 */
export class Connection {
  link = $state<Link>('connecting');
  /** The error that broke the connection. */
  fault = $state.raw<ApiError | undefined>();
  /** Whether the first snapshots have come. */
  loaded = $state(false);
  /** When the newest record on the page was stored. The server stores a record before it sends the record's event. */
  savedAt = $state('');
  readonly #to: Receivers;
  readonly #feed: Feed;
  readonly #frames = new FrameBatch<Event>((events) => this.#apply(events));

  constructor(to: Receivers) {
    this.#to = to;
    this.#feed = new Feed({
      ask: (place, wait, signal) => to.client.events(place, wait, signal),
      load: (signal) => this.#load(signal),
      apply: (batch) => this.#frames.push(batch.events ?? []),
      link: (link, error) => {
        this.link = link === 'reconnecting' && !this.loaded ? 'connecting' : link;
        this.fault = link === 'live' ? undefined : error;
      },
    });
    to.client.onQuestion(({ title }) => to.toasts.announce(t('announce.question', { title })));
  }

  /** Signs in when the link brought a code, then follows the feed until close is called. */
  async start(fragment: string, forgetFragment: () => void): Promise<void> {
    try {
      if (await this.#to.client.login(fragment)) forgetFragment();
    } catch (thrown) {
      forgetFragment();
      this.fault = asApiError(thrown);
      if (this.fault.status !== 0) {
        this.link = 'signed_out';
        return;
      }
    }
    await this.#feed.run();
  }

  /** Asks at once instead of after the pause between two attempts: the page has come to the front, or the machine is online. */
  wake(): void {
    this.#feed.wake();
  }

  close(): void {
    this.#feed.close();
  }

  async #load(signal: AbortSignal): Promise<void> {
    const { client, server, machine, preferences, remotes, rules, catalogue, logins } = this.#to;
    const { comparisons, inbox, conversations, transcripts, navigation } = this.#to;
    this.#frames.clear(); // the snapshots contain the changes of these events
    conversations.stalls.clear(); // the server repeats the event of a stall that lasts
    const loads = transcripts.loads();
    const { first } = navigation;
    if (!this.loaded && first !== undefined) transcripts.view(first);
    const [hello, start, waiting] = await Promise.all([
      client.hello(signal),
      conversations.readStart(signal),
      client.inbox(signal),
      catalogue.load(signal),
      preferences.load(signal),
      remotes.load(signal),
      comparisons.load(signal),
      ...loads.map((load) => this.#unlessRefused(() => load(signal))),
    ]);
    server.hello = hello;
    const listed = conversations.replace(start);
    this.savedAt = conversations.ordered[0]?.updatedAt ?? '';
    inbox.replace(waiting);
    // Conversations that panes show and the list has not: archived, old, or deleted.
    const unlisted = new Set(
      [...navigation.panes.list.map((pane) => pane.session), ...waiting.map((one) => one.session)].filter(
        (id) => !listed.has(id),
      ),
    );
    // Subagents at work stand in the list, which does not bring them.
    const leading = conversations.ordered.filter(({ turn, subagents }) => turn && subagents);
    if (!this.loaded) {
      this.loaded = true;
      navigation.showFirst();
    }
    // The status and the settings show these. They come after the conversations, with which they share the processor.
    await Promise.all([
      machine.load(signal),
      logins.load(),
      rules.load(signal).catch(() => undefined),
      ...leading.map(({ id }) => conversations.readSubagents(id)),
      ...[...unlisted].map((id) => this.#unlessRefused(() => conversations.reload(id), id)),
    ]);
  }

  /** Runs a load, and ignores a refusal: the view shows its own error. The conversation id is removed when the server does not have it. */
  async #unlessRefused(load: () => Promise<unknown>, id = ''): Promise<void> {
    try {
      await load();
    } catch (thrown) {
      if (!isRefused(thrown) || thrown.status === 401) throw thrown;
      if (id && thrown.status === 404) this.#removeSession(id);
    }
  }

  #apply(events: readonly Event[]): void {
    const { client, toasts, machine, preferences, remotes, rules, catalogue, logins } = this.#to;
    const { comparisons, inbox, conversations, transcripts } = this.#to;
    const rest: Event[] = [];
    for (const event of events) {
      switch (event.type) {
        case 'session.upsert':
          this.#putSession(event.data as Session);
          break;
        case 'session.removed':
          this.#removeSession((event.data as { id: string }).id);
          break;
        case 'request.upsert': {
          const request = event.data as Request;
          inbox.put(request, transcripts.has(request.session));
          break;
        }
        case 'agent.upsert':
          catalogue.put(event.data as Agent);
          break;
        case 'install.progress':
          catalogue.progress(event.data as InstallProgress);
          break;
        case 'login.upsert':
          logins.put(event.data as Login);
          break;
        case 'process.upsert':
          machine.processes = event.data as ProcessSum;
          break;
        case 'settings.upsert':
          preferences.settings = event.data as Settings;
          break;
        case 'keyboard.upsert':
          takeKeyboard(event.data as Keyboard);
          break;
        case 'place.upsert':
          remotes.put(event.data as Site);
          break;
        case 'place.removed':
          remotes.drop((event.data as { id: string }).id);
          break;
        case 'comparison.upsert':
          comparisons.put(event.data as Comparison);
          break;
        case 'comparison.removed':
          comparisons.byId.delete((event.data as { id: string }).id);
          break;
        case 'rule.upsert':
          rules.put(event.data as Rule);
          break;
        case 'rule.removed':
          rules.drop((event.data as { id: string }).id);
          break;
        case 'storage.upsert':
          machine.storage = event.data as StorageState;
          break;
        case 'verify.upsert':
          machine.verification = event.data as Verification;
          break;
        case 'discord.upsert':
          machine.discord = event.data as DiscordState;
          break;
        case 'notice':
          void import('./notices').then(({ handleNotice }) => handleNotice(conversations, toasts, event));
          break;
        case 'queue.upsert':
        case 'queue.removed':
          transcripts.applyToQueue(event);
          break;
        default:
          rest.push(event);
      }
    }
    transcripts.apply(rest);
    this.savedAt = events.findLast((event) => event.session && event.type !== 'notice')?.at ?? this.savedAt;
    client.deliver(events);
  }

  #putSession(session: Session): void {
    const { conversations, navigation, preferences } = this.#to;
    const before = conversations.sessions.get(session.id);
    conversations.put(session);
    if (preferences.settings?.sounds) void this.#sound(before, session);
    navigation.markRead(session);
    conversations.forgetAway(session.id);
  }

  /** Tells by a sound what has become of a conversation. Few people want that, so it is loaded when somebody does. */
  async #sound(before: Session | undefined, session: Session): Promise<void> {
    const { conversations, navigation, preferences } = this.#to;
    const { soundOf, tell, play } = await import('./sounds');
    const sound = soundOf(before, session);
    if (!sound) return;
    tell(sound, session, {
      on: () => preferences.settings?.sounds === true,
      looksAt: (id) => navigation.looksAt(id),
      now: (id) => conversations.sessions.get(id),
      play,
    });
  }

  #removeSession(id: string): void {
    const { inbox, conversations, transcripts, navigation } = this.#to;
    conversations.sessions.delete(id);
    inbox.dropSession(id);
    transcripts.close(id);
    navigation.leave(id);
  }
}
