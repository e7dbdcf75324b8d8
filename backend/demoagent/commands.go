package demoagent

import (
	"context"
	"fmt"
	"strings"
)

// Words that the code refers to by name.
const (
	wordSilent = "silent"
	wordCall   = "call"
	wordAttach = "attach"
)

// word is a word of the prompt that selects a step.
type word struct {
	name  string // a word, or several words in a row
	takes string // the arguments, for people
	does  string // the effect, for people
	fault bool   // the word misbehaves: it is in no menu, and last in the table
	run   func(context.Context, *turn)
}

// command is the word as a slash command.
func (w word) command() string { return strings.ReplaceAll(w.name, " ", "-") }

// words is the table of words, in the order in which the words of a prompt act. The package comment repeats the table.
func words() []word {
	return []word{
		{name: "help", does: "lists these words", run: help},
		{name: "echo", does: "returns the content blocks and the _meta of the prompt", run: echo},
		{name: "attachments", does: "tells of each block of the prompt what it is, and which files its _meta names", run: attachments},
		{name: "thought", does: "thinks aloud at length", run: thought},
		{name: "plan", does: "shows a plan that makes progress", run: planning},
		{name: "markdown", does: "shows all of Markdown, and HTML that must not work", run: markdown},
		{name: "media", does: "shows an image, a link and an embedded file", run: media},
		{name: "diff", does: "shows an edit of two files; nothing is written", run: diff},
		{name: "terminal", does: "shows a command whose output streams; nothing is run", run: terminal},
		{name: "permission", does: "asks for permission, then writes " + demoFile, run: permission},
		{name: "ask to run", takes: "<command>", does: "asks for permission to run a command; nothing is run", run: askToRun},
		{name: "question", does: "asks by " + questionMethod, run: question},
		{name: "questions", does: "asks two questions at once, with several answers and with free text", run: questions},
		{name: "form", does: "asks by elicitation/create, a form with every kind of field", run: form},
		{name: "hologram", does: "asks by a form with a field of a kind that nobody knows", run: hologram},
		{name: "visit", does: "asks by elicitation/create to open an address, and tells when all is done there", run: visit},
		{name: "lookalike", does: "asks to open an address whose name looks like another", run: lookalike},
		{name: "unknown request", does: "sends a request that no client knows and waits", run: unknownRequest},
		{name: "vendor request", does: "sends a vendor's request that no client knows and waits", run: vendorRequest},
		{name: "mcp", does: "lists the tools of the MCP servers of the session", run: listTools},
		{name: wordCall, takes: "<server>/<tool> {json}", does: "calls a tool of an MCP server", run: callTool},
		{name: wordAttach, takes: "<file>…", does: "shows files by the client's tool attachment_add; " + demoFile + " without a name", run: attach},
		{name: "download", does: "saves the files of your message by the client's tool attachment_download", run: download},
		{name: "ask user", does: "asks by the client's tool ask_user", run: askUser},
		{name: "notice", does: "sends a notice of each severity, if the client takes notices", run: notices},
		{name: "disk", does: "has the client read and write " + demoFile, run: disk},
		{name: "spawn", does: "has the client run a program", run: spawn},
		{name: "compact", does: "tells of a compaction of its memory, if the client takes that", run: compact},
		{name: "switch", does: "changes the mode of the session by itself", run: switchMode},
		{name: "junk", does: "prints lines and updates that are broken, then goes on", fault: true, run: junk},
		{name: "huge", does: "sends one message of 20 MiB", fault: true, run: huge},
		{name: "burst", does: "sends 10,000 numbered updates as fast as it can", fault: true, run: burst},
		{name: "slow", does: "streams for ten minutes unless it is cancelled", fault: true, run: slow},
		{name: "stream", takes: "1000/s 60s", does: "streams Markdown at this rate, for so long", fault: true, run: stream},
		{name: wordSilent, does: "alone, answers without a single update", fault: true, run: func(context.Context, *turn) {}},
		{name: "limit", does: "ends with stop reason max_tokens", fault: true, run: limit},
		{name: "refuse", does: "ends with stop reason refusal", fault: true, run: refuse},
		{name: "error", does: "answers the prompt with a JSON-RPC error", fault: true, run: fail},
		{name: "crash", does: "exits with code 3 in mid-sentence, with lines on stderr", fault: true, run: crash},
		{name: "hang", does: "never answers and ignores session/cancel", fault: true, run: hang},
		{name: "stubborn", does: "ignores all, signals too, with a child of the same kind in a session of its own", fault: true, run: stubborn},
	}
}

func help(ctx context.Context, t *turn) { t.say(ctx, helpText()) }

// helpText is the table as Markdown.
func helpText() string {
	var out strings.Builder
	out.WriteString("I am the **demo agent**. Any of these words in the first line of a prompt makes me do this; several act in this " +
		"order. As `/word` it acts alone.\n\n| word | what it does |\n|---|---|\n")
	misbehaves := false
	for _, w := range words() {
		if w.fault && !misbehaves {
			misbehaves = true
			out.WriteString("\nThese misbehave, and only in a prompt that begins with a word of either table:\n\n| word | what it does |\n|---|---|\n")
		}
		name := w.name
		if w.takes != "" {
			name += " " + w.takes
		}
		fmt.Fprintf(&out, "| `%s` | %s |\n", name, w.does)
	}
	out.WriteString("\nEverything else gets the plain run: a look, a plan, an edit that asks first, and a check.\n")
	return out.String()
}

func unknownCommand(ctx context.Context, t *turn) {
	t.say(ctx, fmt.Sprintf("There is no command `/%s` here.\n\n%s", clip(t.in.slash, 40), helpText()))
}
