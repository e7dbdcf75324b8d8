package demoagent

import (
	"context"
	"fmt"
	"strings"
)

// Words that the code refers to by name.
const (
	wordHelp   = "help"
	wordCall   = "call"
	wordAttach = "attach"
)

// word is a word of the prompt that selects a step.
type word struct {
	name   string // a word, or several words in a row
	takes  string // the arguments, for people
	does   string // the effect, for people
	line   int    // the line of the help that shows the word
	fault  bool   // see [Word]
	silent bool
	run    func(context.Context, *turn)
}

// command is the word as a slash command.
func (w word) command() string { return strings.ReplaceAll(w.name, " ", "-") }

// ownWords is the table of words, in the order in which the words of a prompt act. The package comment repeats the table.
func ownWords() []word {
	return []word{
		{name: wordHelp, does: "lists these words", run: help},
		{name: "thought", does: "thinks aloud at length", line: 1, run: thought},
		{name: "plan", does: "shows a plan that makes progress", line: 1, run: planning},
		{name: "markdown", does: "shows all of Markdown, and HTML that must not work", line: 2, run: markdown},
		{name: "media", does: "shows an image, a link and an embedded file", line: 2, run: media},
		{name: "diff", does: "shows an edit of two files; nothing is written", line: 3, run: diff},
		{name: "terminal", does: "shows a command whose output streams; nothing is run", line: 3, run: terminal},
		{name: "permission", does: "asks for permission, then writes " + demoFile, line: 4, run: permission},
		{name: "ask to run", takes: "<command>", does: "asks for permission to run a command; nothing is run", line: 4, run: askToRun},
		{name: "question", does: "asks by " + questionMethod, line: 5, run: question},
		{name: "questions", does: "asks two questions at once, with several answers and with free text", line: 5, run: questions},
		{name: "form", does: "asks by elicitation/create, a form with every kind of field", line: 5, run: form},
		{name: "visit", does: "asks by elicitation/create to open an address, and tells when all is done there", line: 5, run: visit},
		{name: "mcp", does: "lists the tools of the MCP servers of the session", line: 6, run: listTools},
		{name: wordCall, takes: "<server>/<tool> {json}", does: "calls a tool of an MCP server", line: 6, run: callTool},
		{name: wordAttach, takes: "<file>…", does: "shows files by the client's tool attachment_add; " + demoFile + " without a name", line: 7, run: attach},
		{name: "download", does: "saves the files of your message by the client's tool attachment_download", line: 7, run: download},
		{name: "ask user", does: "asks by the client's tool ask_user", line: 7, run: askUser},
	}
}

// words are the agent's own words and those of its configuration.
func (c Config) words() []word {
	words := ownWords()
	for _, w := range c.Words {
		words = append(words, word{
			name: w.Name, takes: w.Takes, does: w.Does, fault: w.Fault, silent: w.Silent,
			run: func(ctx context.Context, t *turn) { w.Run(ctx, &Turn{t}) },
		})
	}
	return words
}

// helpLines are what the words on a line of the help show.
func helpLines() []string {
	return []string{
		1: "thinking aloud, and a plan that makes progress",
		2: "how I write, and a picture, a link and a file",
		3: "how an edit and a command look; nothing is written or run",
		4: "asks you before it writes " + demoFile + ", or before a command, which is not run",
		5: "asks you something: in words, by a form, or to open an address",
		6: "the tools of your MCP servers, and one of them at work",
		7: "shows you a file, saves yours, and asks by Deskhand's own tools",
	}
}

func help(ctx context.Context, t *turn) { t.say(ctx, helpText(t.agent.words)) }

// helpText lists the words: those of each line of the help, then one by one those that are on no line.
func helpText(words []word) string {
	lines := helpLines()
	shown := make([][]string, len(lines))
	var further strings.Builder
	for _, w := range words {
		name := "`" + strings.TrimSpace(w.name+" "+w.takes) + "`"
		switch {
		case w.line > 0:
			shown[w.line] = append(shown[w.line], name)
		case w.name != wordHelp:
			fmt.Fprintf(&further, "- %s: %s\n", name, w.does)
		}
	}
	var out strings.Builder
	out.WriteString("I am the **demo agent**. Whatever you write gets one round of work: a look, a plan, an edit that asks first, and a check. " +
		"These words in the first line of a prompt show more, and so does one alone as `/word`:\n\n")
	for i, names := range shown[1:] {
		fmt.Fprintf(&out, "- %s: %s\n", strings.Join(names, ", "), lines[i+1])
	}
	return out.String() + further.String()
}

func unknownCommand(ctx context.Context, t *turn) {
	t.say(ctx, fmt.Sprintf("There is no command `/%s` here.\n\n%s", clip(t.in.slash, 40), helpText(t.agent.words)))
}
