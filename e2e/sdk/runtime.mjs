// The runtime as users of the SDK have it: a Place whose server has a token of the test's choice, clients of both npm packages that
// are closed at the end, and plain calls of /v1 to look behind them.
import assert from "node:assert/strict";
import { AcpHttpClient } from "acp-http-client";
import { SandboxAgent, SandboxAgentError } from "sandbox-agent";
import { Place, until } from "../place.mjs";

export { until };

/** The token of every server that is started here. */
export const token = "the-token-of-this-test-0123456789abcdef";

export class Runtime extends Place {
  flags = ["--token", token];
  /** what ends each client */ ends = [];

  /** A client of sandbox-agent; the options are its own. */
  async connect(options = {}) {
    const sdk = await SandboxAgent.connect({ baseUrl: this.url, token, ...options });
    this.ends.push(() => sdk.dispose());
    return sdk;
  }

  /** A client of acp-http-client, on a server_id of its own. */
  acp(serverId, { agent = "mock", ...options } = {}) {
    const client = new AcpHttpClient({
      baseUrl: this.url, token, transport: { path: `/v1/acp/${serverId}`, bootstrapQuery: { agent } }, ...options,
    });
    this.ends.push(() => client.disconnect());
    return client;
  }

  /** One call of /v1, as curl would do it: {status, type, data}. */
  async v1(method, path, init = {}) {
    const response = await fetch(new URL(path, this.url), { method, ...init, headers: { Authorization: `Bearer ${token}`, ...init.headers } });
    const text = await response.text();
    const type = response.headers.get("content-type");
    return { status: response.status, type, data: /json/.test(type ?? "") ? JSON.parse(text) : text };
  }

  /** What GET /v1/acp lists. */
  async instances() {
    return (await this.v1("GET", "/v1/acp")).data.servers;
  }

  /** The agents that run. */
  agentProcesses() {
    return this.processes().filter(({ command }) => / demo-agent$/.test(command));
  }

  /** The log of an instance from its start to the first message that is enough: [{id, event, message}]. */
  async logOf(serverId, enough) {
    const all = [];
    const response = await fetch(new URL(`/v1/acp/${serverId}`, this.url), {
      headers: { Authorization: `Bearer ${token}`, Accept: "text/event-stream" }, signal: AbortSignal.timeout(10_000),
    });
    assert.equal(response.status, 200);
    for await (const event of eventsOf(response.body)) {
      all.push(event);
      if (enough(event.message)) break; // which closes the stream
    }
    return all;
  }

  /**
   * Runs a program of a user in a process of its own, with URL and TOKEN in its environment: {code, said, err}; said is what it wrote
   * with console.log, a JSON value a line. For what ends a process: the SDK rejects a promise that nobody holds when a POST fails.
   */
  async program(source, env = {}) {
    const { code, out, err } = await this.command(["--input-type=module", "-e", source], {
      bin: process.execPath, cwd: import.meta.dirname, env: { ...this.env, URL: this.url, TOKEN: token, ...env },
    });
    return { code, err, said: out.trim().split("\n").filter(Boolean).map((line) => JSON.parse(line)) };
  }

  async close(t) {
    for (const end of this.ends) await end();
    await super.close(t);
  }
}

/** The events of a stream: {id, event, message}. */
export async function* eventsOf(body) {
  let rest = "";
  for await (const text of body.pipeThrough(new TextDecoderStream())) {
    const blocks = (rest + text).split("\n\n");
    rest = blocks.pop();
    for (const block of blocks) {
      const fields = Object.fromEntries(block.split("\n").map((line) => [line.slice(0, line.indexOf(":")), line.slice(line.indexOf(":") + 2)]));
      if (fields.data) yield { id: Number(fields.id), event: fields.event, message: JSON.parse(fields.data) };
    }
  }
}

/** A fetch for a client that notes what the client asks, and the events of its streams as they come. */
export class Tap {
  /** "POST /v1/acp/x?agent=mock", in the order of asking */ requests = [];
  /** {id, event, message} */ events = [];

  fetch = async (input, init) => {
    const url = new URL(input);
    this.requests.push(`${init.method} ${url.pathname}${url.search}`);
    const response = await fetch(input, init);
    if (!/^text\/event-stream/.test(response.headers.get("content-type") ?? "")) return response;
    const [mine, theirs] = response.body.tee();
    this.#read(mine).catch(() => {}); // the client ends the stream for both
    return new Response(theirs, response);
  };

  async #read(body) {
    for await (const event of eventsOf(body)) this.events.push(event);
  }
}

/** The kind of an update, or the method, or what else a message is. */
export function kindOf(message) {
  return message.params?.update?.sessionUpdate ?? message.method ?? (message.error ? "error" : "result");
}

/** The text that the agent wrote in these messages. */
export function textOf(messages) {
  const updates = messages.map((message) => message.params?.update).filter((update) => update?.sessionUpdate === "agent_message_chunk");
  return updates.map(({ content }) => content.text ?? "").join("");
}

/** Content blocks: a string is one of text. */
export const blocks = (...prompt) => prompt.map((block) => (typeof block === "string" ? { type: "text", text: block } : block));

/** One turn to its end: {response, messages, text}; messages are the payloads of the SDK's events. */
export async function turn(session, ...prompt) {
  const messages = [];
  const off = session.onEvent(({ payload }) => messages.push(payload));
  try {
    const response = await session.prompt(blocks(...prompt));
    // The demo agent ends each turn with its usage. The SDK takes the answer from its POST when that is faster than its stream.
    await until("the end of the turn", () => messages.some((m) => m.result?.stopReason) && messages.some((m) => kindOf(m) === "usage_update"));
    return { response, messages, text: textOf(messages) };
  } finally {
    off();
  }
}

/** For assert.rejects: a problem of this status and type, as the SDK throws it. */
export function problem(status, type) {
  return (error) => {
    assert.ok(error instanceof SandboxAgentError, `${error?.stack ?? error}`);
    const seen = [error.status, error.problem?.status, error.problem?.type];
    assert.deepEqual(seen, [status, status, `urn:sandbox-agent:error:${type}`], JSON.stringify(error.problem));
    assert.ok(error.problem.detail.startsWith(type.replaceAll("_", " ")), error.problem.detail);
    assert.equal(error.message, error.problem.title);
    assert.match(error.response.headers.get("content-type"), /^application\/problem\+json/);
    return true;
  };
}

/** For assert.rejects: an error of a class of the SDK with these fields. */
export function failure(type, fields) {
  return (error) => {
    assert.ok(error instanceof type, `${error?.stack ?? error}`);
    assert.deepEqual(Object.fromEntries(Object.keys(fields).map((name) => [name, error[name]])), fields);
    return true;
  };
}
