// Package demoagent hides an ACP agent that needs no network, no model and no account. People try the demo agent first. Like every other
// agent, the demo agent is a process that speaks ACP v1 on stdin and stdout, and the same prompts always get the same answers. Package
// agenttest adds words to the agent by a [Config], and end-to-end tests drive that one.
//
// In the sample project (package sample) a plain prompt has the agent fix the project's bug: it runs the tests, edits a file after asking, and
// runs the tests again. There "plan" plans a feature, "ask" asks a question, and "picture" shows a picture.
//
// A plain prompt elsewhere is answered by a round of a thought, a plan, a look at deskhand-demo.md in the session's directory, an edit of
// that file (the only file that the agent writes there) after asking for permission, and a check. Words change the answer. A word
// counts as a whole word, in any case, in the first line of the prompt's first text block, so that pasted text and lists of
// attachments select nothing. Several words act one after another in the order of this table, each once. A prompt that begins with
// /word runs that word alone ("ask user" is /ask-user). "call" and "attach" take the rest of the prompt.
//
//	help        lists these words
//	thought     thinks aloud at length
//	plan        shows a plan that makes progress
//	markdown    shows all of Markdown, and HTML that must not work
//	media       shows an image, a link and an embedded file
//	diff        shows an edit of two files; nothing is written
//	terminal    shows a command whose output streams; nothing is run
//	permission  asks for permission, then writes deskhand-demo.md
//	ask to run  asks for permission to run a command; nothing is run
//	question    asks by _sandboxagent/session/request_question
//	questions   asks two questions at once, with several answers and with free text
//	form        asks by elicitation/create, a form with every kind of field
//	visit       asks by elicitation/create to open an address, and tells when all is done there
//	mcp         lists the tools of the MCP servers of the session
//	call        calls a tool of an MCP server
//	attach      shows files by the client's tool attachment_add; deskhand-demo.md without a name
//	download    saves the files of your message by the client's tool attachment_download
//	ask user    asks by the client's tool ask_user
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
// promptRequired, and begins no turn by itself.
//
// MCP servers may be programs or use HTTP or SSE. The client's own tools are those of the MCP server called deskhand.
//
// Histories are JSON-lines files in $DESKHAND_DEMO_STATE, else in deskhand/demo-agent in the XDG state directory. A history is
// replaced as a whole when a prompt comes, when a turn ends and when a setting changes, so that a killed process loses only the
// text of its running turn. A history keeps its newest 4 MiB, and 256 KiB per text. When the directory cannot be written, the agent
// says so on stderr and works without histories.
package demoagent
