import type { paths } from './schema';

// The types of a call, read from the API's document.

type Method = 'get' | 'post' | 'put' | 'patch' | 'delete';

/** A method and a path of the API, such as "GET /client/sessions/{id}". */
export type Route = {
  [P in keyof paths]: {
    [M in Method]: paths[P][M] extends { responses: unknown } ? `${Uppercase<M>} ${P}` : never;
  }[Method];
}[keyof paths];

type Operation<R extends Route> = R extends `${infer M} ${infer P extends keyof paths}`
  ? paths[P][Lowercase<M> & Method]
  : never;

/** Readonly lists, and undefined for members that may be missing: neither is in the JSON. */
type Loose<T> = T extends (infer E)[]
  ? readonly Loose<E>[]
  : T extends object
    ? { readonly [K in keyof T]: Loose<T[K]> | (Record<never, never> extends Pick<T, K> ? undefined : never) }
    : T;

type PathOf<O> = O extends { parameters: { path: infer P } } ? { path: Record<keyof P, string> } : unknown;
type QueryOf<O> = O extends { parameters: { query: infer Q } }
  ? { query: Loose<Q> }
  : O extends { parameters: { query?: infer Q } }
    ? { query?: Loose<Q> }
    : unknown;
type BodyOf<O> = O extends { requestBody: { content: { 'application/json': infer B } } }
  ? { body: Loose<B> }
  : O extends { requestBody?: { content: infer C } }
    ? [C] extends [{ 'application/json': infer B }]
      ? { body?: Loose<B> | undefined }
      : unknown
    : unknown;

interface Options {
  /** Ends the call, in place of the time limit. */
  signal?: AbortSignal | undefined;
  /** Ends the call before the time limit does. */
  end?: AbortSignal;
  /** The body, where the body is not JSON. */
  bytes?: Uint8Array<ArrayBuffer> | ArrayBuffer;
  /**
   * Values that would otherwise be in the query. Engines keep every address that a page has requested for the life of the page: with a new
   * address in each of sixty calls a second, a page grew by 30 MiB an hour.
   */
  headers?: Record<string, string>;
  /**
   * Sends an idempotency key. Calls that create something set once, because a repeated call would create a second record. Calls that set a
   * value do not: the same value may be set again later, and must then take effect.
   */
  once?: boolean;
  /** Lets the request outlive the page, for a draft that is saved while the page closes. */
  keepalive?: boolean;
}

/** What a call of a route sends. */
export type Call<R extends Route> = PathOf<Operation<R>> &
  QueryOf<Operation<R>> &
  BodyOf<Operation<R>> &
  Options;

type Content<T> = T extends { content: { 'application/json': infer A } } ? A : never;
type Json<O> = O extends { responses: infer A } ? Content<A[keyof A & (200 | 201 | 202)]> : never;
/** The answer of a route; void where the answer has no body. */
// eslint-disable-next-line @typescript-eslint/no-invalid-void-type -- the promise of a call without an answer is one of void
export type AnswerOf<R extends Route> = [Json<Operation<R>>] extends [never] ? void : Json<Operation<R>>;

/** The parts of a call that make its address and body, of any route. */
export interface AnyCall extends Options {
  path?: Readonly<Record<string, string>>;
  query?: Readonly<Record<string, string | number | boolean | undefined>>;
  body?: unknown;
}

/** Returns the address of a call. */
export function addressOf(route: string, { path = {}, query = {} }: AnyCall): string {
  const [, template = ''] = route.split(' ');
  const address = template.replace(/\{(\w+)\}/g, (_, name: string) => encodeURIComponent(path[name] ?? ''));
  const search = new URLSearchParams();
  for (const [key, value] of Object.entries(query))
    if (value !== undefined && value !== '') search.set(key, String(value));
  return search.size > 0 ? `${address}?${search}` : address;
}
