// The scripted agent of the manual's pictures. It works on the lighthouse project and gives the same answers in every run: a prompt selects the
// first story whose name begins a word of the prompt.
import fs from "node:fs";
import path from "node:path";

/** The files of the lighthouse project before any turn, by their paths. */
export const project = {
  "README.md": "# Lighthouse\n\nTurns the lamp, and slows it down in a storm.\n",
  "go.mod": "module lighthouse\n\ngo 1.25\n",
  "lamp.go": `package main

import "time"

// A Lamp turns once in a period.
type Lamp struct {
	Period time.Duration
	wind   int
}

// Turn gives the time until the next flash.
func (l *Lamp) Turn() time.Duration {
	if l.wind > 9 {
		return l.Period / 2
	}
	return l.Period
}

// Wind tells the lamp how hard it blows, in Beaufort.
func (l *Lamp) Wind(force int) {
	l.wind = force
}
`,
  "lamp_test.go": `package main

import (
	"testing"
	"time"
)

func TestCalm(t *testing.T) {
	l := &Lamp{Period: 10 * time.Second}
	if l.Turn() != 10*time.Second {
		t.Error("the period is another")
	}
}
`,
  "storm.go": "package main\n\n// Gale is the force from which the lamp is slow.\nconst Gale = 9\n",
  "notes/keeper.md": "# Notes\n\n- The lamp turns too fast in a storm.\n",
};

/** lamp.go after the story "storm". */
export const mended = project["lamp.go"]
  .replace("if l.wind > 9 {\n\t\treturn l.Period / 2", "if l.wind >= Gale {\n\t\treturn 2 * l.Period");

const test = `${project["lamp_test.go"]}
func TestStorm(t *testing.T) {
	l := &Lamp{Period: 10 * time.Second}
	l.Wind(Gale)
	if l.Turn() != 20*time.Second {
		t.Error("it is not slow in a storm")
	}
}
`;

/** Writes the project into a directory. */
export function writeProject(directory) {
  for (const [name, text] of Object.entries(project)) {
    fs.mkdirSync(path.dirname(path.join(directory, name)), { recursive: true });
    fs.writeFileSync(path.join(directory, name), text);
  }
}

/** The agent's entry for agents.json. */
export function scriptedAgent(desk) {
  const texts = { "lamp.go": project["lamp.go"], mended, test: project["lamp_test.go"], storm: test };
  return { id: "keeper", name: "Keeper", command: desk.script("keeper.js", `#!/usr/bin/env node\n(${agent})(${JSON.stringify(texts)});\n`) };
}

/** Runs in the agent's process. */
function agent(texts) {
  const fs = require("fs"), path = require("path");
  let cwd = "", asked = 0;
  const waiting = new Map();
  const write = (message) => process.stdout.write(`${JSON.stringify({ jsonrpc: "2.0", ...message })}\n`);
  const update = (sessionUpdate, rest) => write({ method: "session/update", params: { sessionId: "one", update: { sessionUpdate, ...rest } } });
  const say = (text) => update("agent_message_chunk", { content: { type: "text", text } });
  const think = (text) => update("agent_thought_chunk", { content: { type: "text", text } });
  const steps = ["Find where the lamp is slowed down", "Slow it down in a storm", "Test it with a storm"];
  const plan = (done) => update("plan", { entries: steps.map((content, n) => ({ content, priority: "medium", status: n < done ? "completed" : n === done ? "in_progress" : "pending" })) });
  const file = (name) => path.join(cwd, name);
  const text = (text) => ({ type: "content", content: { type: "text", text } });
  const ask = (method, params) => new Promise((done) => {
    asked++;
    waiting.set(asked, done);
    write({ id: asked, method, params: { sessionId: "one", ...params } });
  });
  let calls = 0;
  const call = (title, kind, rest = {}) => {
    const toolCallId = `call-${++calls}`;
    update("tool_call", { toolCallId, title, kind, status: "in_progress", ...rest });
    return (more) => update("tool_call_update", { toolCallId, status: "completed", ...more });
  };
  const read = (name) => {
    if (fs.existsSync(file(name))) call(`Read ${name}`, "read", { locations: [{ path: file(name) }] })({ content: [text(fs.readFileSync(file(name), "utf8"))] });
  };
  const edit = (name, oldText, newText) => {
    const end = call(`Edit ${name}`, "edit", { locations: [{ path: file(name), line: 13 }], content: [{ type: "diff", path: file(name), oldText, newText }] });
    fs.writeFileSync(file(name), newText);
    end();
  };
  const run = (command, output, status = "completed") =>
    call(command, "execute", { rawInput: { command } })({ status, content: [text("```console\n" + output + "\n```")] });
  const permission = (title, kind, rest) => ask("session/request_permission", {
    toolCall: { toolCallId: `call-${++calls}`, title, kind, status: "pending", ...rest },
    options: [
      { optionId: "once", name: "Allow once", kind: "allow_once" }, { optionId: "always", name: "Always allow", kind: "allow_always" },
      { optionId: "no", name: "Reject", kind: "reject_once" },
    ],
  });

  const stories = {
    async storm() {
      think("The period halves when it blows hard. It should double.");
      plan(0);
      say("I look at the lamp first, and at what a storm is.");
      for (const name of ["lamp.go", "storm.go", "lamp_test.go"]) read(name);
      plan(1);
      say("There it is: from force 10 on, `Turn` **halves** the period, so that the lamp turns faster. It should double it, and a gale begins at 9.");
      edit("lamp.go", texts["lamp.go"], texts.mended);
      plan(2);
      edit("lamp_test.go", texts.test, texts.storm);
      run("go test ./...", "ok  \\tlighthouse\\t0.004s".replaceAll("\\t", "\t"));
      plan(3);
      say("The lamp is **slow in a storm** now:\n\n| wind | period before | now |\n|---|---|---|\n| calm | 10 s | 10 s |\n| force 9 | 10 s | 20 s |\n| force 10 | 5 s | 20 s |\n\n" +
        "`TestStorm` holds it. The notes in `notes/keeper.md` still say that it is too fast; shall I strike that out?");
      update("usage_update", { used: 82_400, size: 200_000, cost: { amount: 0.38, currency: "USD" } });
    },
    async review() {
      say("I read what was changed since yesterday.");
      for (const name of ["lamp.go", "storm.go", "README.md"]) read(name);
      say("Two things that I would change:\n\n1. `wind` is read and written without a lock, though the flash runs beside it.\n2. `Gale` says *from which*, and the code asked for *more than*.\n\nThe rest is fine.");
      update("usage_update", { used: 31_000, size: 200_000 });
    },
    async edit() {
      say("The notes are out of date: the lamp is slow in a storm now.");
      const before = fs.readFileSync(file("notes/keeper.md"), "utf8");
      await permission("Edit notes/keeper.md", "edit", {
        locations: [{ path: file("notes/keeper.md") }],
        content: [{ type: "diff", path: file("notes/keeper.md"), oldText: before, newText: before.replace("turns too fast in a storm", "is slow from force 9 on") + "- The horn is next.\n" }],
      });
    },
    async run(prompt) {
      const command = /run (.*)/.exec(prompt)[1];
      await permission(command, "execute", { rawInput: { command } });
    },
    async slow() {
      say("I look through all of it; that takes a while.");
      read("lamp.go");
      call("go test -race -count=20 ./...", "execute", { rawInput: { command: "go test -race -count=20 ./..." } });
      await new Promise(() => {});
    },
    async fail() {
      run("go vet ./...", "# lighthouse\n./lamp.go:21:3: undefined: Gale", "failed");
      say("It does not build: `Gale` is not there.");
    },
  };

  const answer = {
    initialize: () => ({ protocolVersion: 1, agentInfo: { name: "keeper", title: "Keeper", version: "2.4.0" }, agentCapabilities: { promptCapabilities: { image: true, embeddedContext: true }, mcpCapabilities: { http: true } } }),
    "session/new": (params) => {
      cwd = params.cwd;
      setTimeout(() => update("available_commands_update", { availableCommands: [{ name: "review", description: "Reviews what was changed" }, { name: "test", description: "Runs the tests and mends what fails" }] }));
      return {
        sessionId: "one",
        configOptions: [
          { id: "mode", name: "Mode", category: "mode", type: "select", currentValue: "ask", options: [{ value: "ask", name: "Ask" }, { value: "code", name: "Code" }] },
          { id: "model", name: "Model", category: "model", type: "select", currentValue: "large", options: [{ value: "large", name: "Keeper Large" }, { value: "small", name: "Keeper Small" }] },
        ],
      };
    },
    "session/prompt": async ({ prompt }) => {
      const said = prompt.map((block) => block.text ?? "").join(" ");
      const name = Object.keys(stories).find((story) => new RegExp(`\\b${story}`, "i").test(said));
      await (stories[name] ?? stories.review)(said);
      return { stopReason: "end_turn" };
    },
  };
  require("readline").createInterface({ input: process.stdin }).on("line", async (line) => {
    const { id, method, params } = JSON.parse(line);
    if (!method) return waiting.get(id)?.();
    if (id === undefined) return;
    if (answer[method]) write({ id, result: await answer[method](params) });
    else write({ id, error: { code: -32601, message: "Method not found" } });
  });
}
