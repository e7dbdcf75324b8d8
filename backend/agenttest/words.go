package agenttest

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"path/filepath"
	"strings"
	"unicode"
	"unicode/utf8"

	"deskhand/backend/acp"
	"deskhand/backend/agentio"
	"deskhand/backend/demoagent"
)

// Demo returns the additions of the tests to the demo agent:
//
//	echo             returns the content blocks and the _meta of the prompt
//	attachments      tells of each block of the prompt what it is, and which files its _meta names
//	hologram         asks by a form with a field of a kind that nobody knows
//	lookalike        asks to open an address whose name looks like another
//	unknown request  sends a request that no client knows and waits
//	vendor request   sends a vendor's request that no client knows and waits
//	notice           sends a notice of each severity, if the client takes notices
//	two plans        tells of a checklist and of a document by their ids, and dismisses the checklist, if the client takes that
//	disk             has the client read and write deskhand-demo.md
//	spawn            has the client run a program
//	compact          tells of a compaction of its memory, if the client takes that
//	switch           changes the mode of the session by itself
//	junk             prints lines and updates that are broken, then goes on
//	huge             sends one message of 20 MiB
//	burst            sends 10,000 numbered updates as fast as it can
//	slow             streams for ten minutes unless it is cancelled
//	stream           streams Markdown at this rate, for so long
//	silent           alone, answers without a single update
//	limit            ends with stop reason max_tokens
//	refuse           ends with stop reason refusal
//	error            answers the prompt with a JSON-RPC error
//	crash            exits with code 3 in mid-sentence, with lines on stderr
//	hang             never answers and ignores session/cancel
//	stubborn         ignores all, signals too, with a child of the same kind in a session of its own
//
// The words from "junk" on misbehave, and count only in a line that begins with a word of the agent. A steering message that begins with
// "refuse" is answered with the outcome failed, "error" with an error, and "silent" not at all.
//
// With agent, terminal or env in $DESKHAND_DEMO_LOGIN, or several of them separated by commas, the agent requires a login before a session or a
// prompt, and offers these methods: "demo" by authenticate (and "demo-never", which never answers), "demo-terminal" by a question at a
// terminal, and "demo-key" by any value of $DESKHAND_DEMO_KEY. A file marks the login: $DESKHAND_DEMO_SIGNED_IN, else signed-in beside the
// histories. logout removes the file.
//
// With stdio in $DESKHAND_DEMO_MCP the agent takes programs alone as MCP servers.
func Demo() demoagent.Config {
	cfg := demoagent.Config{Words: words(), Handle: handle, ProgramsOnly: programsOnly()}
	if offersAny() {
		cfg.AuthMethods = authMethods
	}
	return cfg
}

func words() []demoagent.Word {
	return []demoagent.Word{
		{Name: "echo", Does: "returns the content blocks and the _meta of the prompt", Run: echo},
		{Name: "attachments", Does: "tells of each block of the prompt what it is, and which files its _meta names", Run: attachments},
		{Name: "hologram", Does: "asks by a form with a field of a kind that nobody knows", Run: hologram},
		{Name: "lookalike", Does: "asks to open an address whose name looks like another", Run: lookalike},
		{Name: "unknown request", Does: "sends a request that no client knows and waits", Run: unknownRequest},
		{Name: "vendor request", Does: "sends a vendor's request that no client knows and waits", Run: vendorRequest},
		{Name: "notice", Does: "sends a notice of each severity, if the client takes notices", Run: notices},
		{Name: "two plans", Does: "tells of a checklist and of a document by their ids, and dismisses the checklist, if the client takes that", Run: plans},
		{Name: "disk", Does: "has the client read and write " + demoFile, Run: disk},
		{Name: "spawn", Does: "has the client run a program", Run: spawn},
		{Name: "compact", Does: "tells of a compaction of its memory, if the client takes that", Run: compact},
		{Name: "switch", Does: "changes the mode of the session by itself", Run: switchMode},
		{Name: "junk", Does: "prints lines and updates that are broken, then goes on", Fault: true, Run: junk},
		{Name: "huge", Does: "sends one message of 20 MiB", Fault: true, Run: huge},
		{Name: "burst", Does: "sends 10,000 numbered updates as fast as it can", Fault: true, Run: burst},
		{Name: "slow", Does: "streams for ten minutes unless it is cancelled", Fault: true, Run: slow},
		{Name: "stream", Takes: "1000/s 60s", Does: "streams Markdown at this rate, for so long", Fault: true, Run: stream},
		{Name: "silent", Does: "alone, answers without a single update", Fault: true, Silent: true, Run: func(context.Context, *demoagent.Turn) {}},
		{Name: "limit", Does: "ends with stop reason max_tokens", Fault: true, Run: limit},
		{Name: "refuse", Does: "ends with stop reason refusal", Fault: true, Run: refuse},
		{Name: "error", Does: "answers the prompt with a JSON-RPC error", Fault: true, Run: fail},
		{Name: "crash", Does: "exits with code 3 in mid-sentence, with lines on stderr", Fault: true, Run: crash},
		{Name: "hang", Does: "never answers and ignores session/cancel", Fault: true, Run: hang},
		{Name: "stubborn", Does: "ignores all, signals too, with a child of the same kind in a session of its own", Fault: true, Run: stubborn},
	}
}

// handle answers the requests of logins, those that need a login, and the steering messages that go wrong.
func handle(method string, params json.RawMessage) *demoagent.Answer {
	if method == "_session/steering" {
		return steer(params)
	}
	return guard(method, params)
}

// steer answers a steering message whose first word names a fault.
func steer(params json.RawMessage) *demoagent.Answer {
	var request struct{ Prompt []struct{ Text string } }
	if json.Unmarshal(params, &request) != nil || len(request.Prompt) == 0 {
		return nil
	}
	first, _, _ := strings.Cut(strings.ToLower(strings.TrimSpace(request.Prompt[0].Text)), " ")
	switch strings.TrimFunc(first, unicode.IsPunct) {
	case "refuse":
		return &demoagent.Answer{Result: map[string]string{"outcome": "failed"}}
	case "error":
		return &demoagent.Answer{Err: agentio.Errorf(acp.CodeInternalError, "internal error: the message asked for an error")}
	case "silent":
		return &demoagent.Answer{Never: true}
	}
	return nil
}

// echo repeats the prompt byte for byte except for white space, so that a test can compare the bytes.
func echo(ctx context.Context, t *demoagent.Turn) {
	var received struct {
		Prompt []json.RawMessage `json:"prompt"`
		Meta   json.RawMessage   `json:"_meta,omitempty"`
	}
	received.Prompt, received.Meta = t.Prompt()
	var out bytes.Buffer
	encoder := json.NewEncoder(&out)
	encoder.SetEscapeHTML(false)
	encoder.SetIndent("", "  ")
	if err := encoder.Encode(received); err != nil {
		panic(fmt.Sprintf("demo agent: a prompt that was read cannot be written: %v", err))
	}
	chunk := t.Message()
	for _, piece := range split(acp.Fenced("json", out.String()), 64<<10) {
		chunk(ctx, piece)
	}
}

// split cuts a text into pieces of at most size bytes, never within a character.
func split(whole string, size int) []string {
	var out []string
	for len(whole) > size {
		end := size
		for !utf8.RuneStart(whole[end]) {
			end--
		}
		out = append(out, whole[:end])
		whole = whole[end:]
	}
	return append(out, whole)
}

// attachments lists the prompt's blocks and files.
func attachments(ctx context.Context, t *demoagent.Turn) {
	blocks, sent := t.Prompt()
	var out strings.Builder
	out.WriteString("What came with your prompt:\n\n")
	for i, raw := range blocks {
		fmt.Fprintf(&out, "%d. %s\n", i+1, demoagent.Describe(raw))
	}
	var meta struct {
		Ours struct {
			Attachments []struct {
				Path     string `json:"path"`
				Mime     string `json:"mime"`
				Filename string `json:"filename"`
			} `json:"attachments"`
		} `json:"sandboxagent.dev"`
	}
	if sent == nil || json.Unmarshal(sent, &meta) != nil || meta.Ours.Attachments == nil {
		out.WriteString("\nIts `_meta` names no files.\n")
		t.Say(ctx, out.String())
		return
	}
	out.WriteString("\nThe files of its `_meta`:\n\n")
	for _, f := range meta.Ours.Attachments {
		fmt.Fprintf(&out, "- `%s` %s %s\n", f.Path, f.Mime, f.Filename)
	}
	t.Say(ctx, out.String())
}

// No server answers at this address, since the domain invalid is reserved. It has a Cyrillic letter.
const lookalikeURL = "https://sign-in.d\u0435skhand.invalid/device"

func lookalike(ctx context.Context, t *demoagent.Turn) {
	t.AskVisit(ctx, "Sign in to go on.", lookalikeURL)
}

const hologramSchema = `{"type": "object", "properties": {"view": {"type": "hologram", "title": "View", "depth": 3}}, "required": ["view"]}`

func hologram(ctx context.Context, t *demoagent.Turn) {
	t.AskForm(ctx, "How shall the hologram look?", hologramSchema)
}

// unknownRequest sends a method of no protocol, and vendorRequest sends a vendor's method. A client shows the first to a person, and rejects
// the second at once.
func unknownRequest(ctx context.Context, t *demoagent.Turn) { odd(ctx, t, "demo/unknown_request") }

func vendorRequest(ctx context.Context, t *demoagent.Turn) { odd(ctx, t, "_demo/vendor_request") }

func odd(ctx context.Context, t *demoagent.Turn, method string) {
	t.Say(ctx, "I send `"+method+"` and wait.")
	if ctx.Err() != nil {
		return
	}
	result, err, answered := t.Ask(ctx, method, map[string]any{
		"sessionId": t.SessionID(), "note": "No client knows this request.", "values": []int{1, 2, 3},
	})
	switch {
	case !answered:
	case err != nil:
		t.Say(ctx, demoagent.InWords(err))
	default:
		t.Say(ctx, "The client answered with a result: `"+split(string(result), 200)[0]+"`")
	}
}

// notices are shown beside the conversation and are no part of its history.
func notices(ctx context.Context, t *demoagent.Turn) {
	if !given(clientOf(t).Session.Notices) {
		t.Say(ctx, "This client takes no notices (`session.notices`).")
		return
	}
	for _, severity := range []string{"info", "warning", "error"} {
		t.Update(ctx, map[string]string{
			"sessionUpdate": "notice", "severity": severity, "title": "Demo notice: " + severity,
			"description": "This is what a notice of severity " + severity + " looks like.",
		})
	}
	t.Say(ctx, "Three notices are sent.")
}

// plans sends two plans, and removes the first.
func plans(ctx context.Context, t *demoagent.Turn) {
	if !given(clientOf(t).Plan) {
		t.Say(ctx, "This client takes no plans with ids (`plan`).")
		return
	}
	send := func(plan map[string]any) { t.Update(ctx, map[string]any{"sessionUpdate": "plan_update", "plan": plan}) }
	send(map[string]any{"type": "items", "planId": "steps", "entries": []map[string]string{
		{"content": "Read the totals", "priority": "medium", "status": "completed"}, {"content": "Round them", "priority": "high", "status": "pending"},
	}})
	send(map[string]any{"type": "markdown", "planId": "document", "path": filepath.Join(t.Cwd(), "plan.md"), "content": "## Round the totals\n\nThe sum of `lines` is rounded **once**, at the end.\n\n1. Find where it is rounded twice\n2. Keep the last\n"})
	t.Say(ctx, "Two plans, of which the checklist is dismissed.")
	t.Update(ctx, map[string]any{"sessionUpdate": "plan_removed", "planId": "steps"})
}

// switchMode changes to the next mode, like an agent that has finished planning.
func switchMode(ctx context.Context, t *demoagent.Turn) {
	if ctx.Err() == nil {
		t.Say(ctx, "The mode is now `"+t.NextMode()+"`.")
	}
}
