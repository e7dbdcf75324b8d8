import { ApiError } from './errors';

// How this tab shows who it is, and how the program shows that it is the one which let the tab in.
//
// The token is good until the program ends. After each call that found nobody, the program has to prove itself before the token, or
// anything else, is sent again: somebody else may have taken the port. The proof is made with a key that is never sent; the program and
// the tab both derive the token of a new start from it.

const tokenKey = 'deskhand.token';

/** What a link is exchanged for. Bytes are in base64url. */
export interface Granted {
  tab?: string;
  key?: string;
  token: string;
}

export interface Parts {
  fetch: typeof fetch;
  storage: Pick<Storage, 'getItem' | 'setItem' | 'removeItem'>;
  /** Where the page is from, as the browser names it to the program. */
  host: string;
}

export class Tab {
  #parts: Parts;
  #id = '';
  /** It cannot be read again, and goes with the page: a page of somebody else's at this address must not find it. */
  #key: CryptoKey | undefined;
  #proving: Promise<void> | undefined;
  #doubted = false;
  #asked = false;

  constructor(parts: Parts) {
    this.#parts = parts;
  }

  get token(): string | null {
    return this.#parts.storage.getItem(tokenKey);
  }

  forget(): void {
    this.#parts.storage.removeItem(tokenKey);
    this.#key = undefined;
    this.#doubted = false;
  }

  async take(granted: Granted): Promise<void> {
    this.#parts.storage.setItem(tokenKey, granted.token);
    this.#asked = true;
    // Only a page of this machine, or of https, has what makes a proof. Elsewhere the tab needs a new link after a restart.
    if (!granted.tab || !granted.key || !globalThis.crypto?.subtle) return;
    const hmac = { name: 'HMAC', hash: 'SHA-256' };
    this.#key = await crypto.subtle.importKey('raw', bytes(granted.key), hmac, false, ['sign']);
    this.#id = granted.tab;
  }

  /** Nobody answered, or somebody who does not know the token: whoever answers next may be another program. */
  doubt(): void {
    this.#doubted = this.#key !== undefined;
  }

  /** What a call has to wait for, if anything: it is rejected where the program does not prove itself. */
  ready(): Promise<void> | undefined {
    if (this.#doubted) return (this.#proving ??= this.#prove().finally(() => (this.#proving = undefined)));
    if (!this.#asked) this.#remember();
    return undefined;
  }

  /** The token was refused. Tells whether there is another one by now, because the program was started anew. */
  async renewed(refused: string | null): Promise<boolean> {
    this.doubt();
    await this.ready();
    return this.token !== refused;
  }

  /** A page that was loaded anew has the token of before alone, and asks for the rest. */
  #remember(): void {
    this.#asked = true;
    const token = this.token;
    if (!token) return;
    void this.#parts
      .fetch('/client/tab', { headers: { Authorization: `Bearer ${token}` }, cache: 'no-store' })
      .then(async (answer) => (answer.ok ? this.take((await answer.json()) as Granted) : undefined))
      .catch(() => undefined); // without it the tab needs a new link after a restart
  }

  async #prove(): Promise<void> {
    const nonce = text(crypto.getRandomValues(new Uint8Array(32)));
    const { start, proof } = await this.#challenge(nonce);
    const { host } = this.#parts;
    if (proof !== (await this.#sign('deskhand tab proof', host.toLowerCase(), nonce, start)))
      throw unproven();
    const mac = await this.#sign('deskhand tab token', start);
    this.#parts.storage.setItem(tokenKey, `tab.${this.#id}.${mac}`);
    this.#doubted = false;
  }

  async #challenge(nonce: string): Promise<{ start: string; proof: string }> {
    let answer: Response;
    try {
      answer = await this.#parts.fetch('/client/tab/proof', {
        method: 'POST',
        headers: { 'Content-Type': 'application/json' },
        body: JSON.stringify({ tab: this.#id, nonce }),
        cache: 'no-store',
        redirect: 'error',
      });
    } catch (thrown) {
      throw new ApiError('network', {}, 0, thrown instanceof Error ? thrown.message : '');
    }
    const said = (await answer.json().catch(() => undefined)) as
      { start?: unknown; proof?: unknown } | undefined;
    if (!answer.ok || typeof said?.start !== 'string' || typeof said.proof !== 'string') throw unproven();
    return { start: said.start, proof: said.proof };
  }

  async #sign(...lines: string[]): Promise<string> {
    if (!this.#key) throw unproven();
    return text(
      new Uint8Array(await crypto.subtle.sign('HMAC', this.#key, new TextEncoder().encode(lines.join('\n')))),
    );
  }
}

const unproven = () => new ApiError('server.unproven');

function bytes(text: string): Uint8Array<ArrayBuffer> {
  return Uint8Array.from(atob(text.replaceAll('-', '+').replaceAll('_', '/')), (sign) => sign.charCodeAt(0));
}

function text(bytes: Uint8Array): string {
  return btoa(String.fromCharCode(...bytes))
    .replaceAll('+', '-')
    .replaceAll('/', '_')
    .replaceAll('=', '');
}
