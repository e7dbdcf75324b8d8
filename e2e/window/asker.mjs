// An agent for the tests of the window: the first line of a prompt names a file with the request {method, params} that it sends; what is
// answered to that it says, as JSON.
import fs from "node:fs";
import readline from "node:readline";

const send = (message) => process.stdout.write(JSON.stringify({ jsonrpc: "2.0", ...message }) + "\n");
const waiting = new Map();
let last = 0;

function ask(file, sessionId, promptId) {
  const { method, params } = JSON.parse(fs.readFileSync(file, "utf8"));
  const id = `ask-${++last}`;
  waiting.set(id, (answer) => {
    const text = JSON.stringify(answer.result ?? answer.error);
    send({ method: "session/update", params: { sessionId, update: { sessionUpdate: "agent_message_chunk", content: { type: "text", text } } } });
    send({ id: promptId, result: { stopReason: "end_turn" } });
  });
  send({ id, method, params: { sessionId, ...params } });
}

readline.createInterface({ input: process.stdin }).on("line", (line) => {
  const { id, method, params, ...rest } = JSON.parse(line);
  switch (method) {
    case "initialize":
      send({ id, result: { protocolVersion: 1, agentCapabilities: {}, authMethods: [] } });
      break;
    case "session/new":
      send({ id, result: { sessionId: "1" } });
      break;
    case "session/prompt":
      ask(params.prompt[0].text.split("\n")[0], params.sessionId, id);
      break;
    case "session/cancel":
      break;
    default:
      if (method && id !== undefined) send({ id, error: { code: -32601, message: method } });
      else waiting.get(id)?.(rest);
  }
});
