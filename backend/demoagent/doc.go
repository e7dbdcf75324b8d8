// Package demoagent hides an ACP agent that needs no network, no model and no account. People try the demo agent first, and every
// end-to-end test drives it. Like every other agent, the demo agent is a process that speaks ACP v1 on stdin and stdout, and the
// same prompts always get the same answers.
//
// A plain prompt is answered by a round of a thought, a plan, a look at deskhand-demo.md in the session's directory, an edit of
// that file (the only file that the agent ever writes) after asking for permission, and a check. Words change the answer. A word
// counts as a whole word, in any case, in the first line of the prompt's first text block, so that pasted text and lists of
// attachments select nothing. Several words act one after another in the order of this table, each once. A prompt that begins with
// /word runs that word alone ("unknown request" is /unknown-request). "call" and "attach" take the rest of the prompt. The words
// from "junk" on misbehave, and count only in a line that begins with a word of the table.
//
//	help             lists these words
//	echo             returns the content blocks and the _meta of the prompt
//	attachments      tells of each block of the prompt what it is, and which files its _meta names
//	thought          thinks aloud at length
//	plan             shows a plan that makes progress
//	markdown         shows all of Markdown, and HTML that must not work
//	media            shows an image, a link and an embedded file
//	diff             shows an edit of two files; nothing is written
//	terminal         shows a command whose output streams; nothing is run
//	permission       asks for permission, then writes deskhand-demo.md
//	ask to run       asks for permission to run a command; nothing is run
//	question         asks by _sandboxagent/session/request_question
//	questions        asks two questions at once, with several answers and with free text
//	form             asks by elicitation/create, a form with every kind of field
//	hologram         asks by a form with a field of a kind that nobody knows
//	visit            asks by elicitation/create to open an address, and tells when all is done there
//	lookalike        asks to open an address whose name looks like another
//	unknown request  sends a request that no client knows and waits
//	vendor request   sends a vendor's request that no client knows and waits
//	mcp              lists the tools of the MCP servers of the session
//	call             calls a tool of an MCP server
//	attach           shows files by the client's tool attachment_add; deskhand-demo.md without a name
//	download         saves the files of your message by the client's tool attachment_download
//	ask user         asks by the client's tool ask_user
//	notice           sends a notice of each severity, if the client takes notices
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
// The modes are ask (asks before the edit), code (does not ask) and plan (changes nothing). "allow always" holds for the session,
// across restarts. "permission" asks in every mode.
//
// A cancel ends a turn within a chunk, also while the turn waits for an answer; pending requests are withdrawn with
// $/cancel_request, and only the answer follows. The updates of a turn come before its answer. A second prompt meanwhile is an
// error.
//
// The agent lists, forks (session/fork, unstable in ACP), closes and deletes sessions. While a turn runs, the agent takes
// _session/steering: the next chunk reports the message, and the history holds it. Without a running turn the agent answers
// promptRequired, and begins no turn by itself. A message that begins with "refuse" is answered with the outcome failed, "error"
// with an error, and "silent" not at all.
//
// With agent, terminal or env in $DESKHAND_DEMO_LOGIN, or several of them separated by commas, the agent requires a login before a
// session or a prompt, and offers these methods: "demo" by authenticate (and "demo-never", which never answers), "demo-terminal" by
// a question at a terminal, and "demo-key" by any value of $DESKHAND_DEMO_KEY. A file marks the login: $DESKHAND_DEMO_SIGNED_IN,
// else signed-in beside the histories. logout removes the file.
//
// MCP servers may be programs or use HTTP or SSE; with stdio in $DESKHAND_DEMO_MCP the agent takes programs alone. The client's
// own tools are those of the MCP server called deskhand.
//
// Histories are JSON-lines files in $DESKHAND_DEMO_STATE, else in deskhand/demo-agent in the XDG state directory. A history is
// replaced as a whole when a prompt comes, when a turn ends and when a setting changes, so that a killed process loses only the
// text of its running turn. A history keeps its newest 4 MiB, and 256 KiB per text. When the directory cannot be written, the agent
// says so on stderr and works without histories.
package demoagent
