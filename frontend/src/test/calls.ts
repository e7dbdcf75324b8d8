import { vi } from 'vitest';
import type { Client } from '../api/client';
import { addressOf, type AnyCall } from '../api/route';

/** Answers the calls of a client in place of the server. A call is refused with what answer throws. */
export function answering(
  client: Pick<Client, 'call'>,
  answer: (method: string, address: string, call: AnyCall) => unknown,
) {
  const call = (route: string, made: AnyCall = {}) =>
    new Promise((done) => done(answer(route.split(' ')[0] ?? '', addressOf(route, made), made)));
  return vi.spyOn(client, 'call').mockImplementation(call as never);
}
