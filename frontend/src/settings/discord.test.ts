import { describe, expect, test } from 'vitest';
import type { DiscordBinding, DiscordCheck, DiscordServer, DiscordState } from '../api/records';
import { ApiError } from '../api/errors';
import { discord as texts } from '../strings/discord';
import {
  answered,
  channelsOf,
  faultOf,
  followed,
  ignoredOf,
  nameOf,
  reasonOf,
  todoOf,
  toneOf,
} from './discord';

const at = '2026-11-21T14:00:00.000Z';
const now = Date.parse('2026-11-21T14:05:00.000Z');

const state = (part: Partial<DiscordState> = {}): DiscordState => ({
  enabled: true,
  status: 'connected',
  since: at,
  hasToken: true,
  users: [],
  bindings: [],
  ignored: { strangers: 0, bots: 0, direct: 0, unbound: 0 },
  ...part,
});

const binding = (part: Partial<DiscordBinding> = {}): DiscordBinding => ({
  channel: '1',
  guild: '9',
  createdAt: at,
  ...part,
});

describe('why it does not work', () => {
  test('is said in words, with what Discord said', () => {
    expect(reasonOf(state(), now)).toBeUndefined();
    expect(
      reasonOf(
        state({ status: 'refused', reason: 'discord.token_invalid', detail: '401: Unauthorized' }),
        now,
      ),
    ).toBe(`${texts['error.discord.token_invalid']}\n401: Unauthorized`);
    expect(reasonOf(state({ status: 'refused', reason: 'discord.intents' }), now)).toBe(
      texts['error.discord.intents'],
    );
  });

  test('is the code where it has no words, and nothing while it is off', () => {
    expect(reasonOf(state({ status: 'refused', reason: 'discord.brand_new' }), now)).toBe(
      'discord.brand_new',
    );
    expect(
      reasonOf(state({ enabled: false, status: 'off', reason: 'discord.token_invalid' }), now),
    ).toBeUndefined();
  });

  test('tells the end of a lockout as a time of day', () => {
    const told = reasonOf(
      state({ status: 'refused', reason: 'discord.rate', detail: '2026-11-21T15:30:00Z' }),
      now,
    );
    expect(told).toMatch(/until .*\d{1,2}:\d{2}/);
    expect(told).not.toContain('2026-11-21T');
    expect(faultOf(new ApiError('discord.rate', { until: '2026-11-21T15:30:00Z' }, 429), now)).toBe(told);
  });
});

test('each state has a tone of its own, and only the working one looks well', () => {
  expect(
    (['off', 'connecting', 'connected', 'reconnecting', 'refused'] as const).map((status) =>
      toneOf({ status }),
    ),
  ).toEqual(['muted', 'warn', 'ok', 'warn', 'danger']);
});

test('a fault is told by its code, and with what the network said', () => {
  expect(faultOf(new ApiError('discord.user', { id: 'mira' }, 400), now)).toContain(
    'nobody with the ID mira',
  );
  expect(faultOf(new ApiError('discord.unreachable', { detail: 'no route to host' }, 502), now)).toBe(
    'Discord cannot be reached.\nno route to host',
  );
  expect(faultOf(new ApiError('discord.brand_new', {}, 400, 'something else'), now)).toContain(
    'something else',
  );
});

test('those who were not listened to are counted, and only they', () => {
  expect(ignoredOf({ strangers: 0, bots: 0, direct: 0, unbound: 0 })).toBeUndefined();
  const told = ignoredOf({ strangers: 2, bots: 1, direct: 0, unbound: 1200 });
  expect(told).toContain(
    '2 messages and presses from strangers, 1 message from a bot, 1,200 messages in unbound channels',
  );
  expect(told).not.toContain('direct');
});

test('who is heard is what the last answer says until the feed has told of that or of something newer', () => {
  const [none, mira, noor, both] = [[], [{ id: '1' }], [{ id: '2' }], [{ id: '1' }, { id: '2' }]];
  const counts = (lists: ReturnType<typeof followed>) => lists.at(-1);
  // A person was removed and added again; the feed reports the removal late.
  let lists = answered(answered([mira], none, []), mira, []);
  for (const told of [mira, none]) {
    lists = followed(lists, told);
    expect(counts(lists)).toBe(mira);
  }
  expect(followed(lists, mira)).toEqual([mira]);
  expect(counts(followed(lists, both))).toBe(both);
  // The feed was faster than the answer, and has reported newer lists since.
  expect(counts(answered(followed(followed([mira], none), noor), none, [none, noor]))).toBe(noor);
});

describe('channels to choose from', () => {
  const servers: DiscordServer[] = [
    {
      id: '9',
      name: 'Workshop',
      channels: [
        { id: '2', name: 'lighthouse', kind: 'text' },
        { id: '3', name: 'lamp', kind: 'thread', parent: '2' },
        { id: '1', name: 'general', kind: 'text', missing: ['View Channel', 'Send Messages'] },
        { id: '4', name: 'Lounge', kind: 'voice' },
        { id: '5', name: 'Plans', kind: 'forum' },
      ],
    },
    { id: '8', name: 'Elsewhere', channels: [{ id: '6', name: 'general', kind: 'text' }] },
  ];

  const named = (...how: [DiscordBinding[], 'session' | 'directory']) =>
    channelsOf(servers, ...how).map(({ value, name, group }) => `${group} ${value} ${name}`);

  test('are those in which one can write, in the order of Discord, threads behind their channel', () => {
    expect(named([], 'session')).toEqual([
      'Workshop 2 #lighthouse',
      'Workshop 3 #lighthouse › lamp',
      'Workshop 1 #general',
      'Workshop 4 #Lounge',
      'Elsewhere 6 #general',
    ]);
  });

  test('are those that have threads, where each of those begins something; what is bound is not there', () => {
    expect(named([binding({ channel: '1' })], 'directory')).toEqual([
      'Workshop 2 #lighthouse',
      'Workshop 5 #Plans',
      'Elsewhere 6 #general',
    ]);
  });

  test('say what the bot lacks there', () => {
    const [lighthouse, , general] = channelsOf(servers, [], 'session');
    expect(general?.description).toBe('The bot lacks: View Channel, Send Messages');
    expect(lighthouse).not.toHaveProperty('description');
  });
});

test('a channel is called by its name, a thread without the sign of a channel', () => {
  expect(nameOf(binding({ channel: '77', name: 'lamp' }))).toBe('#lamp');
  expect(nameOf(binding({ channel: '77', name: 'lamp', thread: true }))).toBe('lamp');
  expect(nameOf(binding({ channel: '77' }))).toBe('77');
});

describe('what to do about what was checked', () => {
  const todo = (check: DiscordCheck) => todoOf(check, now);

  test('is nothing where all is well', () => {
    expect(todo({ id: 'token', status: 'ok' })).toBeUndefined();
  });

  test('names what is missing, and where', () => {
    const lacking = (channels: string) =>
      todo({
        id: 'permissions',
        status: 'missing',
        params: { channel: 'general', missing: 'Send Messages', channels },
      });
    expect(lacking('1')).toMatch(/^In general it lacks: Send Messages\.[^.]*\.$/);
    expect(lacking('3')).toMatch(/^In general it lacks: Send Messages\..* 2 more channels lack something\.$/);
    expect(todo({ id: 'clock', status: 'missing', params: { seconds: '-3600' } })).toContain('-3600 s');
    expect(todo({ id: 'users', status: 'missing' })).toBe(texts['discord.check.users.missing']);
  });

  test('is the reason where there is one', () => {
    expect(todo({ id: 'token', status: 'missing', params: { reason: 'discord.token_invalid' } })).toBe(
      texts['error.discord.token_invalid'],
    );
  });

  test('tells the end of a lockout as the state does, whichever way it comes', () => {
    const until = '2026-11-21T15:30:00Z';
    const told = reasonOf(state({ status: 'refused', reason: 'discord.rate', detail: until }), now);
    const ways = [{ until }, { detail: until }, { detail: until, until }];
    for (const way of ways)
      expect(todo({ id: 'reachable', status: 'missing', params: { reason: 'discord.rate', ...way } })).toBe(
        told,
      );
    const open = todo({
      id: 'reachable',
      status: 'missing',
      params: { reason: 'discord.rate', detail: '429' },
    });
    expect(open).toBe(`${texts['discord.rate.later']}\n429`);
  });

  test('is to switch it on where it is off', () => {
    for (const status of ['missing', 'unknown'] as const)
      expect(todo({ id: 'reachable', status, params: { reason: 'discord.off' } })).toBe(
        'Discord is off. Turn it on above.',
      );
  });

  test('is to connect where commands are not known', () => {
    expect(todo({ id: 'commands', status: 'unknown' })).toBe('They are registered when the bot connects.');
    expect(todo({ id: 'commands', status: 'unknown', params: { detail: 'timeout' } })).toBe('timeout');
  });

  test('is to mend the others first where it could not be found out', () => {
    expect(todo({ id: 'server', status: 'unknown' })).toBe(texts['discord.check.unknown']);
    expect(todo({ id: 'server', status: 'unknown', params: { detail: 'timeout' } })).toBe('timeout');
  });

  test('has words for every one of them', () => {
    const ids: DiscordCheck['id'][] = [
      'token',
      'reachable',
      'intent.content',
      'server',
      'users',
      'binding',
      'permissions',
      'commands',
      'clock',
    ];
    for (const id of ids) {
      expect(todo({ id, status: 'missing' }), id).not.toContain('discord.check');
      expect(texts[`discord.check.${id}`], id).not.toBe('');
    }
  });
});
