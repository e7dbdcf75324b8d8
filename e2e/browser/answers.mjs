// Ten typical answers of coding agents, which answers.test.mjs plays and shoots. Each is a list of what the agent sends in a turn: a text is
// an answer in pieces, an object an update, and an object with `ask` a permission.
import { picture } from "./picture.mjs";

const call = (toolCallId, title, kind, more = {}) => ({ sessionUpdate: "tool_call", toolCallId, title, kind, status: "in_progress", ...more });
const done = (toolCallId, more = {}) => ({ sessionUpdate: "tool_call_update", toolCallId, status: "completed", ...more });
const said = (text) => [{ type: "content", content: { type: "text", text } }];

/** Files that the answers name. */
export const files = {
  "README.md": "# Lighthouse\n\nTurns the lamp.\n",
  "src/lamp.go": `package lamp\n\n${"// a line\n".repeat(60)}`,
  "src/storm.go": "package lamp\n\nconst Gale = 9\n",
  "docs/beam.png": picture(640, 200, [226, 176, 70]),
};

export const answers = {
  review: [
    `# Review of the storm mode

The change does what it says, and the tests cover the calm case well. Two things should be fixed before it is merged; the rest is a matter
of taste. I read \`src/lamp.go\`, \`src/storm.go\` and the tests, and ran them three times with \`-race\`.

## Must fix

1. **The lamp turns faster in a storm, not slower.** \`Turn\` halves the period where it should double it, see [lamp.go](src/lamp.go:18):

   \`\`\`go
   if l.wind > Gale {
       return l.Period / 2 // should be 2 * l.Period
   }
   \`\`\`

2. **\`Gale\` itself is no gale.** The comparison is \`>\`, and the Beaufort scale begins its gales *at* the limit. Every other place in the
   package uses \`>=\`.

### Why the tests did not notice

\`TestCalm\` sets no wind. A table test with the forces 8, 9 and 10 would have failed on the first run, and costs six lines.

## Should fix

- The wind is written from the radio's goroutine and read by the motor's: that is a data race as soon as both run.
  - Either guard it by the mutex that \`Lamp\` has already,
  - or make it an \`atomic.Int64\`, which is enough for a single number.
- \`NewLamp\` accepts a period of zero, and then \`Turn\` never blocks.
- [x] The documentation names the new setting
- [ ] The changelog does not

## Taste

> A function that returns a duration reads better as \`NextFlash\` than as \`Turn\`, because nothing turns when it is called.

That is an old remark of mine[^1] and no reason to wait. Otherwise: good names, short functions, and a commit message that says *why*.

<details>
<summary>What I ran</summary>

\`\`\`sh
go test -race -count=3 ./...
go vet ./...
\`\`\`

All of it passed, which is the problem described above.

</details>

[^1]: See the review of the first version, in \`docs/\`.
`,
  ],

  table: [
    `Here is how the three ways compare on this machine, median of ten runs:

| Way | Throughput | p95 | Memory | Remarks |
|:--|--:|--:|--:|:--|
| One goroutine a lamp | 48,200/s | 3.1 ms | 212 MB | simple, grows with the number of lamps |
| Worker pool (\`n = 8\`) | **61,900/s** | **1.4 ms** | 38 MB | needs a queue and a limit |
| Event loop | 57,300/s | 1.9 ms | **24 MB** | hardest to read, no blocking calls |

With $n$ workers and a service time of $s$, the longest wait is about

$$
W = \\frac{\\rho}{1 - \\rho} \\cdot \\frac{s}{n}, \\qquad \\rho = \\frac{\\lambda s}{n}
$$

so the pool is safe up to $\\rho \\approx 0.8$. I would take the **worker pool**: it is within 15 MB of the loop, and everybody can read it.

\`\`\`mermaid
flowchart LR
  R[Radio] -->|wind| Q[(Queue)]
  Q --> W1[Worker 1]
  Q --> W2[Worker 2]
  W1 --> L[Lamp]
  W2 --> L
\`\`\`
`,
  ],

  code: [
    `I would write it like this: the wind is guarded by the lamp's own lock, and \`NextFlash\` says what it returns.

\`\`\`go
// A Lamp flashes once in a period, and half as often in a storm.
type Lamp struct {
	Period time.Duration

	mu   sync.Mutex // protects the fields below
	wind int        // in Beaufort
}

// NextFlash gives the time until the next flash.
func (l *Lamp) NextFlash() time.Duration {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.wind >= Gale {
		return 2 * l.Period
	}
	return l.Period
}
\`\`\`

And the page that shows it, where the line is long on purpose:

\`\`\`tsx
export function Flash({ lamp, onStorm }: { lamp: Lamp; onStorm: (force: number) => void }) {
  const [force, setForce] = useState(0);
  const label = \`Next flash in \${lamp.nextFlash(force).toFixed(1)} s\`; // told to those who cannot see it, too, by the same words
  return <button aria-label={label} onClick={() => onStorm(force + 1)}>{label}</button>;
}
\`\`\`

The parts fit together like this:

\`\`\`
lighthouse/
├── src/
│   ├── lamp.go        the lamp and its lock
│   └── storm.go       what a gale is
└── docs/
    └── beam.png
┌────────┐    wind     ┌────────┐
│ radio  │ ──────────→ │  lamp  │
└────────┘             └────────┘
\`\`\`
`,
  ],

  diff: [
    "I change the comparison and the factor, and add the test that was missing.\n",
    call("edit", "Edit src/lamp.go", "edit", { locations: [{ path: "src/lamp.go", line: 16 }] }),
    done("edit", {
      content: [{
        type: "diff", path: "src/lamp.go",
        oldText: "func (l *Lamp) Turn() time.Duration {\n\tif l.wind > 9 {\n\t\treturn l.Period / 2\n\t}\n\treturn l.Period\n}\n",
        newText: "func (l *Lamp) Turn() time.Duration {\n\tif l.wind >= Gale {\n\t\treturn 2 * l.Period\n\t}\n\treturn l.Period\n}\n",
      }],
    }),
    `Done. As a patch:

\`\`\`diff
--- a/src/lamp.go
+++ b/src/lamp.go
@@ -14,7 +14,7 @@
 func (l *Lamp) Turn() time.Duration {
-	if l.wind > 9 {
-		return l.Period / 2
+	if l.wind >= Gale {
+		return 2 * l.Period
 	}
 	return l.Period
 }
\`\`\`
`,
  ],

  build: [
    "I run the build and the tests.\n",
    call("build", "go test ./...", "execute", { rawInput: { command: "go test ./..." } }),
    done("build", {
      status: "failed", rawOutput: { exitCode: 1 },
      content: said(`${Array.from({ length: 40 }, (_, n) => `ok  \tlighthouse/part${n}\t0.0${n % 10}s`).join("\n")}
--- FAIL: TestStorm (0.00s)
    src/lamp_test.go:31: the next flash is in 5s, want 20s
FAIL
FAIL	lighthouse/src	0.004s
FAIL
`),
    }),
    `**The build is fine, one test fails:** \`TestStorm\` gets 5 s where it wants 20 s ([lamp_test.go](src/lamp.go:31)).

The cause is the factor: in a storm the period is *halved*. Change \`l.Period / 2\` to \`2 * l.Period\` and the test passes. Shall I?
`,
  ],

  plan: [
    {
      sessionUpdate: "plan",
      entries: [
        { content: "Read how the lamp turns", priority: "high", status: "completed" },
        { content: "Slow it down from a gale on", priority: "high", status: "in_progress" },
        { content: "Guard the wind by the lock", priority: "medium", status: "pending" },
        { content: "Tell it in the changelog", priority: "low", status: "pending" },
      ],
    },
    `## How I would go about it

1. **Read** how the lamp turns today, and what sets the wind.
2. **Slow it down** from a gale on:
   - double the period in \`Turn\`,
   - name the limit \`Gale\` in one place.
3. **Guard** the wind by the lock, since the radio has a goroutine of its own.
4. **Tell it**: a line in the changelog, and the setting in the manual.

It is about forty lines, and nothing that others call changes its name.
`,
  ],

  question: [
    "The period can be doubled in a storm, or set to a fixed time. Both are a line; the first follows what the keeper has set.\n",
    call("write", "Write src/storm.go", "edit", { locations: [{ path: "src/storm.go" }], content: [{ type: "diff", path: "src/storm.go", oldText: "package lamp\n\nconst Gale = 9\n", newText: "package lamp\n\n// Gale is the force from which the lamp is slow.\nconst Gale = 9\n" }] }),
    { ask: "write", title: "Write src/storm.go" },
    done("write"),
    "Written.\n",
  ],

  image: [
    `This is the beam at night, drawn from the measurements of last week:

![The beam at night](docs/beam.png)

It reaches **19 nautical miles**. The picture of the coast guard is at ![Coast guard](https://example.com/coast.png), which I have not opened.
`,
  ],

  right: [
    `# סקירת מצב הסערה

השינוי עושה את מה שנאמר עליו. צריך לתקן שני דברים ב־\`src/lamp.go\` לפני המיזוג, והשאר עניין של טעם.

## מה לתקן קודם

1. הפונקציה \`Turn\` מחלקת את המחזור בשתיים במקום להכפיל אותו.
2. ההשוואה היא \`>\` ולא \`>=\`:
   - הסולם מתחיל *בגבול* עצמו,
   - וכך בכל מקום אחר.

> פונקציה שמחזירה משך זמן נקראת טוב יותר \`NextFlash\`.

| קובץ | שורה | מה |
|---|--:|---|
| \`lamp.go\` | 18 | הגורם |
| \`storm.go\` | 3 | הגבול |

\`\`\`go
return 2 * l.Period
\`\`\`
`,
  ],

  subagent: [
    "I let a helper look at the tests while I read the radio.\n",
    call("task", "Look at the tests of the lamp", "think", { rawInput: { description: "Look at the tests of the lamp", subagent_type: "explore" } }),
    call("read", "Read src/lamp.go", "read", { locations: [{ path: "src/lamp.go" }], _meta: { claudeCode: { parentToolUseId: "task" } } }),
    done("read", { content: said("package lamp\n") }),
    done("task", { content: said("Three tests, none of which sets the wind. `TestCalm` covers the period; a table test for the forces 8 to 10 is missing.") }),
    `The helper found **three tests, none of which sets the wind**. Together with what I read:

- \`radio.go\` sets the wind from a goroutine of its own,
- nothing tests that,
- a table test for the forces 8 to 10 is missing.
`,
  ],
};

/** What an answer may try by the parts of Markdown that draw and unfold. */
export const hostile = [
  `\`\`\`mermaid
---
config:
  themeCSS: "} body { display: none } .x {"
---
%%{init: {"securityLevel": "loose", "htmlLabels": true, "themeCSS": "} body { display: none } .x {"}}%%
flowchart LR
  A["<img src=x onerror='window.top.deskhandHacked=1'>"] --> B["<script>window.top.deskhandHacked=1</script>words"]
  click A "javascript:window.top.deskhandHacked=1"
  click B href "https://example.com/diagram"
\`\`\`

\`\`\`mermaid
flowchart LR
  A -->
\`\`\`

<details ontoggle="window.deskhandHacked=1" open><summary onclick="window.deskhandHacked=1">Fold<img src=x onerror="window.deskhandHacked=1"></summary><iframe src="https://example.com/frame"></iframe></details>

A note[^"onclick=window.deskhandHacked=1//].

![elsewhere](https://example.com/a.png) ![text](data:image/svg+xml;base64,PHN2Zy8+) ![outside](../../etc/a.png) ![page](data:text/html;base64,AAAA)

[^"onclick=window.deskhandHacked=1//]: <script>window.deskhandHacked=1</script>
`,
];

/** The program of the agent that plays them, as text: a prompt is the name of an answer. */
export const player = (file) => `#!/usr/bin/env node
const answers = JSON.parse(require("fs").readFileSync(${JSON.stringify(file)}, "utf8"));
const write = (message) => process.stdout.write(JSON.stringify({ jsonrpc: "2.0", ...message }) + "\\n");
const results = { initialize: { protocolVersion: 1, agentCapabilities: {} }, "session/prompt": { stopReason: "end_turn" } };
const waiting = new Map();
let next = 1000, sessions = 0;
require("readline").createInterface({ input: process.stdin }).on("line", async (line) => {
  const { id, method, params, result } = JSON.parse(line);
  if (method === undefined) return waiting.get(id)?.(result);
  if (method === "session/new") return write({ id, result: { sessionId: "s" + ++sessions } });
  if (method === "session/prompt") {
    const { sessionId, prompt } = params;
    const update = (update) => write({ method: "session/update", params: { sessionId, update } });
    for (const step of answers[prompt.map((one) => one.text ?? "").join("").trim()] ?? []) {
      if (typeof step === "string")
        for (const text of step.match(/[^]{1,40}/gu)) update({ sessionUpdate: "agent_message_chunk", content: { type: "text", text } });
      else if (step.ask) {
        const asks = next++;
        write({ id: asks, method: "session/request_permission", params: { sessionId, toolCall: { toolCallId: step.ask, title: step.title },
          options: [{ optionId: "yes", name: "Allow", kind: "allow_once" }, { optionId: "no", name: "Reject", kind: "reject_once" }] } });
        await new Promise((done) => waiting.set(asks, done));
      } else update(step);
    }
  }
  if (id !== undefined) write({ id, result: results[method] ?? {} });
});
`;
