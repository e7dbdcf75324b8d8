// An agent that a case scripts: it answers initialize and session/new by itself, and leaves each other message to the case.
// The file is read by two processes: a test calls agent(), and the agent's own process calls serve().
import fs from "node:fs";
import path from "node:path";

/**
 * Writes the agent's program into the place and returns its entry for agents.json. The case's function runs in the agent's own
 * process, so that it sees its arguments alone: (agent, data). It returns {method: message => …}; data must be JSON.
 */
export function agent(place, script, { id = "scripted", data = null, ...entry } = {}) {
  const file = path.join(place.dir, `${id}.mjs`);
  fs.writeFileSync(file, `import { serve } from ${JSON.stringify(import.meta.url)};\nserve(${script}, ${JSON.stringify(data)}, ${JSON.stringify(notes(place))});\n`);
  return { id, name: "Scripted", command: process.execPath, args: [file], ...entry };
}

const notes = (place) => path.join(place.dir, "notes.jsonl");

/** Everything that agents of the place noted under the name, oldest first. */
export function noted(place, name) {
  if (!fs.existsSync(notes(place))) return [];
  return fs.readFileSync(notes(place), "utf8").trimEnd().split("\n").map((line) => JSON.parse(line)).filter((note) => note.name === name).map((note) => note.value);
}

class Agent {
  session = "one";
  #asked = 0;
  #waiting = new Map();
  #notes;

  constructor(notes) {
    this.#notes = notes;
  }

  raw(text) {
    process.stdout.write(text);
  }

  send(message) {
    this.raw(`${JSON.stringify({ jsonrpc: "2.0", ...message })}\n`);
  }

  answer({ id }, result) {
    this.send({ id, result });
  }

  fail({ id }, error) {
    this.send({ id, error });
  }

  update(sessionUpdate, fields) {
    this.send({ method: "session/update", params: { sessionId: this.session, update: { sessionUpdate, ...fields } } });
  }

  say(text) {
    this.update("agent_message_chunk", { content: { type: "text", text } });
  }

  /** Sends a request; the promise holds the whole response. */
  ask(method, params) {
    const id = ++this.#asked;
    this.send({ id, method, params: { sessionId: this.session, ...params } });
    return new Promise((done) => this.#waiting.set(id, done));
  }

  note(name, value) {
    fs.appendFileSync(this.#notes, `${JSON.stringify({ name, value })}\n`);
  }

  take(message) {
    if (message.method) return false;
    this.#waiting.get(message.id)?.(message);
    this.#waiting.delete(message.id);
    return true;
  }
}

/** Speaks ACP on stdin and stdout until stdin ends. */
export function serve(script, data, notes) {
  const agent = new Agent(notes);
  const methods = {
    initialize: (message) => agent.answer(message, { protocolVersion: 1, agentCapabilities: {}, authMethods: [] }),
    "session/new": (message) => agent.answer(message, { sessionId: agent.session }),
    "session/prompt": (message) => agent.answer(message, { stopReason: "end_turn" }),
    ...script(agent, data),
  };
  let rest = "";
  process.stdin.setEncoding("utf8");
  process.stdin.on("data", (part) => {
    const lines = (rest + part).split("\n");
    rest = lines.pop();
    for (const message of lines.filter(Boolean).map((line) => JSON.parse(line))) {
      if (agent.take(message)) continue;
      if (methods[message.method]) methods[message.method](message);
      else if (message.id !== undefined) agent.fail(message, { code: -32601, message: "no such method" });
    }
  });
  process.stdin.on("end", () => process.exit(0));
}
