import type {
  DiscordBinding,
  DiscordChannel,
  DiscordCheck,
  DiscordServer,
  DiscordState,
} from '../api/records';
import { asApiError } from '../api/errors';
import '../strings/discord';
import { lookup, t, tn } from '../strings/t';
import { moment } from '../ui/format';

// The texts about Discord.

/** The key of the token form's unsaved values, and the values. */
export const tokenForm = 'discord token';
export interface TokenWords {
  token: string;
  rest: string | undefined;
  gateway: string | undefined;
}

type Tone = 'ok' | 'warn' | 'danger' | 'muted';

export function toneOf({ status }: Pick<DiscordState, 'status'>): Tone {
  switch (status) {
    case 'connected':
      return 'ok';
    case 'refused':
      return 'danger';
    case 'off':
      return 'muted';
    default:
      return 'warn';
  }
}

export type People = DiscordState['users'];

const same = (one: People, other: People) =>
  one.length === other.length && one.every(({ id }, at) => id === other[at]?.id);

/**
 * Merges a list of people from the feed. lists holds the feed's last list, then the answers to later changes; the last list counts. A list
 * from the feed that is in lists is older than the lists after it; any other is the newest.
 */
export function followed(lists: readonly People[], told: People): readonly People[] {
  return [told, ...lists.slice(lists.findIndex((one) => same(one, told)) + 1 || lists.length)];
}

/** Appends the answer to a change, unless the feed has reported that list already. */
export function answered(
  lists: readonly People[],
  answer: People,
  meanwhile: readonly People[],
): readonly People[] {
  return meanwhile.some((one) => same(one, answer)) ? lists : [...lists, answer];
}

/** Returns the text of a code, followed by the text of Discord, the network or the system. The end of a lockout is shown as a time. */
function wordsOf(code: string, params: Readonly<Record<string, string>>, now: number): string | undefined {
  const { detail } = params;
  // A state has no parameters, and a check may lack `until`: then the detail is the end of the lockout.
  const until = params['until'] ?? (code === 'discord.rate' ? detail : undefined);
  if (until !== undefined && !/^\d{4}-\d\d-\d\dT/.test(until))
    // Date.parse reads a bare number as a year.
    return [t('discord.rate.later'), detail].filter(Boolean).join('\n');
  const words = lookup(
    `error.${code}`,
    until === undefined ? params : { ...params, until: moment(until, now) },
  );
  return words === undefined || !detail || detail === until || words.includes(detail)
    ? words
    : `${words}\n${detail}`;
}

/** Returns the reason why the surface does not work. */
export function reasonOf({ enabled, reason, detail = '' }: DiscordState, now: number): string | undefined {
  if (!enabled || !reason) return undefined;
  return wordsOf(reason, { detail }, now) ?? (detail || reason);
}

/** Returns the text of a failed action. */
export function faultOf(thrown: unknown, now: number): string {
  const error = asApiError(thrown);
  return wordsOf(error.code, error.params, now) ?? t('error.unknown', { detail: error.detail || error.code });
}

/** Returns the number of ignored senders by kind; undefined when there were none. */
export function ignoredOf(ignored: DiscordState['ignored']): string | undefined {
  const { strangers, bots, direct, unbound } = ignored;
  const told = [
    strangers > 0 && tn('discord.ignored.strangers', strangers),
    bots > 0 && tn('discord.ignored.bots', bots),
    direct > 0 && tn('discord.ignored.direct', direct),
    unbound > 0 && tn('discord.ignored.unbound', unbound),
  ].filter((one) => one !== false);
  return told.length > 0 ? t('discord.ignored', { what: told.join(', ') }) : undefined;
}

interface ChannelOption {
  value: string;
  name: string;
  group: string;
  description?: string;
}

/** Returns the name of a channel, otherwise its id. */
export function nameOf({
  channel,
  name,
  thread,
}: Pick<DiscordBinding, 'channel' | 'name' | 'thread'>): string {
  if (!name) return channel;
  return thread ? name : `#${name}`;
}

/** The types of channels that can be bound to a session, or to a directory in which each thread begins a session. */
const kinds = {
  session: ['text', 'announcement', 'thread', 'voice'],
  directory: ['text', 'announcement', 'forum'],
} as const satisfies Record<string, readonly DiscordChannel['kind'][]>;

/** Returns the channels that can be bound and are not, by server, in Discord's order. Threads follow their channel. */
export function channelsOf(
  servers: readonly DiscordServer[],
  bound: readonly DiscordBinding[],
  to: keyof typeof kinds,
): ChannelOption[] {
  const taken = new Set(bound.map(({ channel }) => channel));
  const fits: readonly DiscordChannel['kind'][] = kinds[to];
  return servers.flatMap(({ name: group, channels }) => {
    const parents = new Map(channels.map(({ id, name }) => [id, name]));
    return channels
      .filter(({ id, kind }) => !taken.has(id) && fits.includes(kind))
      .map(({ id, name, kind, parent = '', missing }) => {
        const thread = `#${parents.get(parent) ?? ''} › ${name}`;
        return {
          value: id,
          name: kind === 'thread' ? thread : `#${name}`,
          group,
          ...(missing && missing.length > 0
            ? { description: t('discord.bind.channel.lacks', { missing: missing.join(', ') }) }
            : {}),
        };
      });
  });
}

/** Returns the advice about a check; undefined where there is nothing to do. */
export function todoOf({ id, status, params = {} }: DiscordCheck, now: number): string | undefined {
  if (status === 'ok') return undefined;
  const reason = params['reason'];
  if (reason === 'discord.off') return t('discord.check.off');
  const known = reason === undefined ? undefined : wordsOf(reason, params, now);
  if (known !== undefined) return known;
  if (status === 'unknown')
    return (
      params['detail'] ?? t(id === 'commands' ? 'discord.check.commands.unknown' : 'discord.check.unknown')
    );
  const more = Number(params['channels'] ?? 1) - 1;
  const words = t(`discord.check.${id}.missing`, params);
  return more > 0 ? `${words} ${tn('discord.check.permissions.more', more)}` : words;
}
