// An agent that says what a file holds, in pieces as a model does, in a directory with some files.
import fs from "node:fs";
import path from "node:path";
import { App } from "./app.mjs";
import { Desk } from "./desk.mjs";

const reader = (file) => `#!/usr/bin/env node
const write = (message) => process.stdout.write(JSON.stringify({ jsonrpc: "2.0", ...message }) + "\\n");
const answers = { initialize: { protocolVersion: 1, agentCapabilities: {} }, "session/new": { sessionId: "one" }, "session/prompt": { stopReason: "end_turn" } };
require("readline").createInterface({ input: process.stdin }).on("line", (line) => {
  const { id, method } = JSON.parse(line);
  if (method === "session/prompt") {
    const text = require("fs").readFileSync(${JSON.stringify(file)}, "utf8");
    for (const piece of text.match(/[^]{1,40}/gu))
      write({ method: "session/update", params: { sessionId: "one", update: { sessionUpdate: "agent_message_chunk", content: { type: "text", text: piece } } } });
  }
  if (id !== undefined) write({ id, result: answers[method] ?? {} });
});
`;

/** Opens a conversation in which the agent has said some words. files are further files of the directory, by name. */
export async function said(t, words, { files = {}, ...options } = {}) {
  const desk = Desk.make(t);
  const file = path.join(desk.dir, "words.md");
  const put = (name, text) => {
    fs.mkdirSync(path.dirname(path.join(desk.work, name)), { recursive: true });
    fs.writeFileSync(path.join(desk.work, name), text);
  };
  put("src/main.go", `package main\n\n${"// words\n".repeat(200)}func theFunction() {}\n`);
  put("src/a b#c.go", "package main // blanks\n");
  put("docs/README.md", "# Read\n\nSee [the program](../src/main.go#L203).\n");
  for (const [name, text] of Object.entries(files)) put(name, text);
  fs.writeFileSync(file, words(desk.work));
  desk.agents([{ id: "reader", name: "Reader", command: desk.script("reader.js", reader(file)) }]);
  await desk.start();
  const app = await App.open(desk, { agent: "Reader", viewport: { width: 1440, height: 900 }, ...options });
  await app.turn("Read it to me");
  return { desk, app, answer: app.log.getByRole("article", { name: "Answer" }) };
}
