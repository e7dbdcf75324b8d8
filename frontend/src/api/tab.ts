import { ApiError } from './errors';

// How this tab authenticates to the server, and how the server proves that it is the program that admitted the tab.
// The token is valid until the server ends. When a call finds nobody, another program may take the port; so the server must prove itself
// before the tab sends the token, or anything else, again. The proof is made with a key that is never sent. Server and tab both derive the
// token of the next start from that key.

const tokenKey = 'deskhand.token';

/** The server's answer to the code of a link. Bytes are in base64url. */
interface Granted {
  tab?: string;
  key?: string;
  token: string;
}

export interface Parts {
  fetch: typeof fetch;
  storage: Pick<Storage, 'getItem' | 'setItem' | 'removeItem'>;
  /** The host of the page, as the browser sends it to the server. */
  host: string;
}

export class Tab {
  #parts: Parts;
  #id = '';
  /** The key is not extractable and ends with the page: another page at this address must not find it. */
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
    // WebCrypto exists only on loopback and https pages. On other pages the tab needs a new link after a restart.
    if (!granted.tab || !granted.key || !globalThis.crypto?.subtle) return;
    const hmac = { name: 'HMAC', hash: 'SHA-256' };
    this.#key = await crypto.subtle.importKey('raw', bytes(granted.key), hmac, false, ['sign']);
    this.#id = granted.tab;
  }

  /**
   * Makes the tab ask for a proof before the next call. Callers call doubt when nobody answered or the token was refused: the next answer
   * may come from another program.
   */
  doubt(): void {
    this.#doubted = this.#key !== undefined;
  }

  /** Returns a promise while a call must wait for the proof. The promise is rejected when the server cannot prove itself. */
  ready(): Promise<void> | undefined {
    if (this.#doubted) return (this.#proving ??= this.#prove().finally(() => (this.#proving = undefined)));
    if (!this.#asked) this.#remember();
    return undefined;
  }

  /** Reports, after a token was refused, whether the tab has a new token by now because the server restarted. */
  async renewed(refused: string | null): Promise<boolean> {
    this.doubt();
    await this.ready();
    return this.token !== refused;
  }

  /** Fetches the tab's key. A page that was reloaded has only its token. */
  #remember(): void {
    this.#asked = true;
    const token = this.token;
    if (!token) return;
    void this.#parts
      .fetch('/client/tab', { headers: { Authorization: `Bearer ${token}` }, cache: 'no-store' })
      .then(async (answer) => (answer.ok ? this.take((await answer.json()) as Granted) : undefined))
      .catch(() => undefined); // without the key the tab needs a new link after a restart
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
