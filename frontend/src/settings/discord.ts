import type {
  DiscordBinding,
  DiscordChannel,
  DiscordCheck,
  DiscordServer,
  DiscordState,
} from '../api/discord';
import { asApiError } from '../api/errors';
import '../strings/discord';
import { lookup, t, tn } from '../strings/t';
import { moment } from '../ui/format';

// What is shown of Discord, in words.

/** What is written in the form for a token, and under which name it is kept. */
export const tokenForm = 'discord token';
export interface TokenWords {
  token: string;
  rest: string | undefined;
  gateway: string | undefined;
}

export type Tone = 'ok' | 'warn' | 'danger' | 'muted';

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
 * Lists of people, oldest first: what the feed has told last, and what answers to changes have said since. The last one counts. What the
 * feed tells of a list that stands here is older than those behind it; of any other it is newer than all of them.
 */
export function followed(lists: readonly People[], told: People): readonly People[] {
  return [told, ...lists.slice(lists.findIndex((one) => same(one, told)) + 1 || lists.length)];
}

/** The same with the answer to a change, unless the feed was faster, which may have told of newer ones since. */
export function answered(
  lists: readonly People[],
  answer: People,
  meanwhile: readonly People[],
): readonly People[] {
  return meanwhile.some((one) => same(one, answer)) ? lists : [...lists, answer];
}

/** The words for a code, and below them what Discord, the network or the system said; the end of a lockout is told as a time of day. */
function wordsOf(code: string, params: Readonly<Record<string, string>>, now: number): string | undefined {
  const { detail } = params;
  // A state has no parameters, and a check may have none of this one: the detail is the end of a lockout then.
  const until = params['until'] ?? (code === 'discord.rate' ? detail : undefined);
  if (until !== undefined && !/^\d{4}-\d\d-\d\dT/.test(until))
    // a number is a year to Date.parse
    return [t('discord.rate.later'), detail].filter(Boolean).join('\n');
  const words = lookup(
    `error.${code}`,
    until === undefined ? params : { ...params, until: moment(until, now) },
  );
  return words === undefined || !detail || detail === until || words.includes(detail)
    ? words
    : `${words}\n${detail}`;
}

/** Why it does not work. */
export function reasonOf({ enabled, reason, detail = '' }: DiscordState, now: number): string | undefined {
  if (!enabled || !reason) return undefined;
  return wordsOf(reason, { detail }, now) ?? (detail || reason);
}

/** What went wrong with something that a person did here. */
export function faultOf(thrown: unknown, now: number): string {
  const error = asApiError(thrown);
  return wordsOf(error.code, error.params, now) ?? t('error.unknown', { detail: error.detail || error.code });
}

/** Who was not listened to, and how often; undefined when nobody was. */
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

export interface ChannelOption {
  value: string;
  name: string;
  group: string;
  description?: string;
}

/** A channel by its name, else by its id. */
export function nameOf({
  channel,
  name,
  thread,
}: Pick<DiscordBinding, 'channel' | 'name' | 'thread'>): string {
  if (!name) return channel;
  return thread ? name : `#${name}`;
}

/** What a channel has to be of, to be bound to a conversation, or to have one begin with each of its threads. */
const kinds = {
  session: ['text', 'announcement', 'thread', 'voice'],
  directory: ['text', 'announcement', 'forum'],
} as const satisfies Record<string, readonly DiscordChannel['kind'][]>;

/** The channels that can be bound to that and are not bound, by server, in Discord's order: threads stand behind their channel. */
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

/** What to do about one thing that was checked; undefined where nothing is. */
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
