// What the tests of editors and of the transport share: the program, what it serves, and a client on the SDK that notes what it is told.
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, readFileSync, realpathSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { Readable, Writable } from 'node:stream';
import { client, methods, ndJsonStream } from '@agentclientprotocol/sdk';

const bin = process.env.DESKHAND_BIN;
if (!bin) throw new Error('DESKHAND_BIN names no program');

// A directory of its own for a test. It is removed at the very end: what is registered with a test first runs first, and then the
// programs still write there.
export function place() {
  const dir = realpathSync(mkdtempSync(join(tmpdir(), 'deskhand-peer-')));
  process.on('exit', () => rmSync(dir, { recursive: true, force: true, maxRetries: 10 }));
  return dir;
}

export function start(t, dir, args, stdio = ['pipe', 'pipe', 'pipe']) {
  const child = spawn(bin, args, {
    stdio,
    cwd: dir,
    env: {
      ...process.env,
      DESKHAND_DATA_DIR: join(dir, 'data'),
      DESKHAND_DEMO_STATE: join(dir, 'demo'),
      DESKHAND_LOGIN_SHELL: 'off',
      DESKHAND_KEYRING: 'off',
      DESKHAND_CATALOGUE_URL: 'off',
      HOME: dir,
      DISPLAY: '',
      WAYLAND_DISPLAY: '',
    },
  });
  child.said = '';
  child.stderr.setEncoding('utf8').on('data', (text) => (child.said += text));
  child.gone = once(child, 'exit');
  t.after(async () => {
    child.kill('SIGTERM');
    await child.gone;
  });
  return child;
}

// The server, and calls of its API as the window makes them.
export async function serve(t, dir) {
  const child = start(t, dir, ['server', '--port', '0', '--root', dir]);
  const { value: link } = await createInterface({ input: child.stdout })[Symbol.asyncIterator]().next();
  if (!link) throw new Error(`the server did not start: ${child.said}`);
  const url = new URL(link).origin;
  const token = (name) => readFileSync(join(dir, 'data', name), 'utf8').trim();
  const call = async (method, path, body) => {
    const res = await fetch(`${url}/client/${path}`, {
      method,
      headers: { Authorization: `Bearer ${token('client-token')}`, 'Content-Type': 'application/json' },
      body: body && JSON.stringify(body),
    });
    const text = await res.text();
    if (!res.ok) throw new Error(`${method} ${path}: ${res.status} ${text}`);
    return text && JSON.parse(text);
  };
  return { child, url, token: token('token'), call };
}

// An editor: a client on the SDK. What it is told is in updates; what it is asked goes to the functions that are set.
export class Editor {
  updates = [];
  asked = [];
  withdrawn = [];
  #waiting = [];
  permission = () => ({ outcome: { outcome: 'cancelled' } });
  elicitation = () => ({ action: 'cancel' });

  constructor(stream) {
    const note = (list, item) => {
      list.push(item);
      for (const check of this.#waiting.splice(0)) check();
    };
    const ask = (kind) => async ({ params, signal }) => {
      note(this.asked, { kind, params });
      signal.addEventListener('abort', () => note(this.withdrawn, params));
      return this[kind](params, signal);
    };
    this.connection = client({ name: 'editor' })
      .onNotification(methods.client.session.update, ({ params }) => note(this.updates, params))
      .onRequest(methods.client.session.requestPermission, ask('permission'))
      .onRequest(methods.client.elicitation.create, ask('elicitation'))
      .onNotification(methods.client.elicitation.complete, () => {})
      .connect(stream);
    this.agent = this.connection.agent;
  }

  request(method, params) {
    return this.agent.request(method, params);
  }

  initialize(clientCapabilities = {}) {
    return this.request(methods.agent.initialize, {
      protocolVersion: 1,
      clientInfo: { name: 'editor', version: '1' },
      clientCapabilities,
    });
  }

  prompt(sessionId, ...prompt) {
    return this.request(methods.agent.session.prompt, {
      sessionId,
      prompt: prompt.map((block) => (typeof block === 'string' ? { type: 'text', text: block } : block)),
    });
  }

  // until waits for something that it is told or asked.
  async until(what, holds) {
    const late = Date.now() + 30_000;
    for (;;) {
      const found = holds();
      if (found) return found;
      await new Promise((resolve, reject) => {
        const timer = setTimeout(
          () => reject(new Error(`no ${what}; told ${JSON.stringify(this.updates).slice(-3000)}`)),
          late - Date.now(),
        );
        this.#waiting.push(() => (clearTimeout(timer), resolve()));
      });
    }
  }

  kinds() {
    return this.updates.map(({ update }) => update.sessionUpdate);
  }

  said(kind = 'agent_message_chunk') {
    return this.updates
      .filter(({ update }) => update.sessionUpdate === kind && update.content.type === 'text')
      .map(({ update }) => update.content.text)
      .join('');
  }
}

// An editor that has started the program, as editors do.
export function editor(t, dir, ...args) {
  const child = start(t, dir, ['acp', '--agent', 'mock', ...args]);
  const made = new Editor(ndJsonStream(Writable.toWeb(child.stdin), Readable.toWeb(child.stdout)));
  made.child = child;
  return made;
}
