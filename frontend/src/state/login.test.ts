import { expect, test } from 'vitest';
import type { Login, LoginMethod, LoginVar } from '../api/records';
import { asks, entered, failureText, missing, newest, stageOf } from './login';

const login = (part: Partial<Login> = {}): Login => ({
  id: 'l1',
  agent: 'claude',
  method: 'account',
  type: 'agent',
  state: 'running',
  startedAt: '2026-11-21T14:00:00.000Z',
  ...part,
});
const method = (part: Partial<LoginMethod> = {}): LoginMethod => ({
  id: 'account',
  name: 'Account',
  type: 'agent',
  ...part,
});
const variable = (part: Partial<LoginVar> = {}): LoginVar => ({
  name: 'API_KEY',
  secret: true,
  optional: false,
  set: false,
  ...part,
});

test('a login that was begun is shown before everything else', () => {
  expect(stageOf(undefined, undefined).name).toBe('choose');
  expect(stageOf(undefined, method({ type: 'env' })).name).toBe('fields');
  expect(stageOf(login(), method({ type: 'env' })).name).toBe('running');
  expect(stageOf(login({ state: 'failed' }), undefined).name).toBe('failed');
  expect(stageOf(login({ state: 'done' }), undefined).name).toBe('done');
});

test('one that was cancelled is none', () => {
  const cancelled = login({ state: 'failed', code: 'login.cancelled' });
  expect(stageOf(cancelled, undefined).name).toBe('choose');
  expect(stageOf(cancelled, method()).name).toBe('fields');
});

test('values are asked for where a method has any, whatever its type', () => {
  expect(asks(method())).toBe(false);
  expect(asks(method({ vars: [] }))).toBe(false);
  expect(asks(method({ vars: [variable()] }))).toBe(true);
});

test('an answer that comes after the event of the end undoes nothing', () => {
  const done = login({ state: 'done' });
  expect(newest(undefined, login())).toEqual(login());
  expect(newest(done, login())).toBe(done);
  expect(newest(login(), done)).toBe(done);
  expect(newest(done, login({ id: 'l2' })).id).toBe('l2');
});

test('fields: what is needed, and what is sent', () => {
  const vars = [
    variable(),
    variable({ name: 'BASE_URL', secret: false, optional: true }),
    variable({ name: 'KEPT', set: true }),
  ];
  expect(missing(vars, {}).map((one) => one.name)).toEqual(['API_KEY']);
  expect(missing(vars, { API_KEY: '  ' }).map((one) => one.name)).toEqual(['API_KEY']);
  expect(missing(vars, { API_KEY: 'x' })).toEqual([]);
  expect(entered(vars, { API_KEY: ' x ', BASE_URL: '', OTHER: 'y' })).toEqual({ API_KEY: 'x' });
});

test.each<[Partial<Login>, string]>([
  [{ code: 'login.failed', detail: 'The code has expired.' }, 'The code has expired.'],
  [{ code: 'login.failed' }, 'Claude did not accept the login.'],
  [{}, 'Claude did not accept the login.'],
  [{ code: 'login.timeout' }, 'It took too long, and was ended. Try again.'],
  [{ code: 'login.exit', detail: 'exit status 3' }, 'The program ended before the login was complete.'],
  [{ code: 'login.new', detail: 'Odd.' }, 'Odd.'],
])('why it failed: %j', (part, text) => {
  expect(failureText(login({ state: 'failed', ...part }), 'Claude')).toBe(text);
});
