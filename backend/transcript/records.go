package transcript

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"deskhand/backend/acp"
	"deskhand/backend/attachment"
	"deskhand/backend/record"
)

// Attachment is a stored file, with the form in which the file travels to the agent of its session.
type Attachment struct {
	ID        string `json:"id"`
	Filename  string `json:"filename"`
	MimeType  string `json:"mimeType"`
	Size      int64  `json:"size"`
	SHA256    string `json:"sha256,omitempty" doc:"SHA-256 of the file's bytes in hexadecimal, when the bytes are kept as a blob"`
	Given     string `json:"given,omitempty" doc:"The path as the prompt gave it, when that differs from path"`
	Path      string `json:"path,omitempty" doc:"Absolute path; absent when only the bytes are known"`
	URI       string `json:"uri,omitempty"`
	Directory bool   `json:"directory,omitempty"`
	Width     int    `json:"width,omitempty" doc:"Width of an image in pixels"`
	Height    int    `json:"height,omitempty"`
	Travels   string `json:"travels,omitempty" enum:"image,embedded,link,text" doc:"Form in which the agent gets the file; absent while the form is unknown"`
	Warning   string `json:"warning,omitempty" doc:"Stable code of a warning about the form: copied, demoted, downscaled, no_image, no_embedded, too_large_to_embed, text_only, unknown_pdf, directory"`
	Copied    bool   `json:"copied,omitempty" doc:"The agent gets a copy in the session's directory"`
	Missing   bool   `json:"missing,omitempty" doc:"The file is no longer at its path"`
}

// File returns the file of an attachment, without its journey.
func (a Attachment) File() attachment.File {
	return attachment.File{
		ID: a.ID, Filename: a.Filename, MimeType: a.MimeType, Size: a.Size, SHA256: a.SHA256, Path: a.Path, URI: a.URI, Given: a.Given, Directory: a.Directory,
		Width: a.Width, Height: a.Height, Blob: a.SHA256 != "",
	}
}

// Plain returns the attachment without the fields about its way to the agent.
func (a Attachment) Plain() Attachment {
	a.Travels, a.Warning, a.Copied, a.Missing = "", "", false, false
	return a
}

// Exit is the end of an agent process, or the failure of its start (then Code is absent, and Problem has the reason).
type Exit struct {
	Code       *int              `json:"code,omitempty"`
	Signal     string            `json:"signal,omitempty"`
	StderrTail string            `json:"stderrTail,omitempty" doc:"Last lines of the agent's stderr, at most 8 KiB"`
	Problem    string            `json:"problem,omitempty" doc:"Stable code of the problem: agent.unknown, agent.not_installed, agent.file_broken, agent.spawn_failed, agent.exited, agent.handshake_failed, agent.auth_required, agent.protocol, agent.no_answer, agent.mode_lost, start.mode, start.model, start.refused, start.unasked, directory.missing, session.interrupted, session.import_failed, session.import_unsupported; of agents on other machines place.unknown, place.unreachable, place.refused, place.problem, place.gone, place.unended"`
	Params     map[string]string `json:"params,omitempty"`
	At         record.Time       `json:"at"`
}

// TurnError is the agent's JSON-RPC error that ended a turn, or the start that the turn waited for.
type TurnError struct {
	Code    int64  `json:"code"`
	Message string `json:"message" doc:"The agent's message, followed by the parts of its error's data that the message does not say"`
	Kind    string `json:"kind,omitempty" enum:"auth,rate_limit,network,refused,agent" doc:"What a person can do: log in, wait, look at the network, change the request, or look at the agent's log. Told by the code and the words of the error; absent of turns from before it was told"`
}

// Usage is how full the agent's context is, and what else the agent tells of what it spends.
type Usage struct {
	Used   int64          `json:"used"`
	Size   int64          `json:"size"`
	Cost   *Cost          `json:"cost,omitempty"`
	Limits []AccountLimit `json:"limits,omitempty" doc:"Limits of the account that the agent works with, each as it was last told; those whose resetsAt has passed count no more"`
}

// Spent returns the cost of the session; the zero Cost where the agent has told none.
func (u *Usage) Spent() Cost {
	if u == nil || u.Cost == nil {
		return Cost{}
	}
	return *u.Cost
}

// AccountLimit is a limit of the account that an agent works with.
type AccountLimit struct {
	Type     string       `json:"type,omitempty" doc:"The provider's word for the limit, such as five_hour, seven_day, seven_day_opus or overage; absent when the agent names none"`
	Status   string       `json:"status,omitempty" enum:"allowed,allowed_warning,rejected" doc:"Whether requests go through, go through though little is left, or are refused"`
	Used     *float64     `json:"used,omitempty" minimum:"0" maximum:"1" doc:"The part of the limit that is used"`
	ResetsAt *record.Time `json:"resetsAt,omitempty"`
}

// Cost is the session's total cost so far.
type Cost struct {
	Amount   float64 `json:"amount"`
	Currency string  `json:"currency"`
}

// Command is a slash command of the agent.
type Command struct {
	Name        string `json:"name"`
	Description string `json:"description,omitempty"`
	Hint        string `json:"hint,omitempty" doc:"Placeholder for the input after the command's name"`
}

// Entry is one item of a transcript; Kind tells which of the other fields are there:
//
//	user                  Text, Blocks, Attachments: what travelled with it
//	agent, thought        Text, Blocks
//	attachment            Attachments: one file that the agent gives
//	tool                  Tool
//	plan                  Plan, or Text: a document in Markdown
//	request               Request (the id; the request itself comes beside)
//	notice                Notice
//	divider               Divider
//	terminal              Terminal, Text: a program that ran for the agent and what it wrote
//	file                  File: a file that we have written for the agent
//	compaction            Compaction, Text (its summary), Blocks
//	straggler             Straggler: a command that runs on though its turn was stopped
//	raw                   Raw, Reason: an update that could not be understood, shown as it came
type Entry struct {
	ID         string            `json:"id"`
	Session    string            `json:"session"`
	Turn       string            `json:"turn,omitempty"`
	Generation int64             `json:"generation"`
	Seq        int64             `json:"seq" doc:"Number of the entry in the session, ascending"`
	At         record.Time       `json:"at"`
	Kind       string            `json:"kind" enum:"user,agent,thought,tool,plan,request,rule,notice,divider,terminal,file,attachment,compaction,straggler,subagent,message,raw"`
	Text       string            `json:"text,omitempty"`
	Clipped    int               `json:"clipped,omitempty" doc:"Bytes of the text that are left out here; GET …/entries/{entry}/text returns the whole text"`
	Blocks     []json.RawMessage `json:"blocks,omitempty" doc:"ACP content blocks other than text"`
	Tool       *ToolCall         `json:"tool,omitempty"`
	Plan       []PlanItem        `json:"plan,omitempty"`
	PlanID     string            `json:"planId,omitempty" doc:"Of a plan: its name among those of the session; absent where the agent gives none"`
	PlanPath   string            `json:"planPath,omitempty" doc:"Of a plan: the file that has it"`
	Removed    bool              `json:"removed,omitempty" doc:"Of a plan: the agent has dismissed it"`
	Request    string            `json:"request,omitempty"`
	Rule       *RuleAnswer       `json:"rule,omitempty"`
	Notice     *Notice           `json:"notice,omitempty"`
	Divider    *Divider          `json:"divider,omitempty"`
	Terminal   *Terminal         `json:"terminal,omitempty"`
	File       *FileChange       `json:"file,omitempty"`
	Compaction *Compaction       `json:"compaction,omitempty"`
	Straggler  *Straggler        `json:"straggler,omitempty"`
	Subagent   *BegunSubagent    `json:"subagent,omitempty"`
	Message    *SessionMessage   `json:"message,omitempty"`

	Attachments []Attachment `json:"attachments,omitempty"`

	Raw    json.RawMessage `json:"raw,omitempty"`
	Reason string          `json:"reason,omitempty" doc:"Reason that the entry is raw: unknown_update, broken_update, unknown_method, invalid_stdout, other_session"`
}

// ToolCall is the state of one tool call of the agent.
type ToolCall struct {
	ToolCallID string            `json:"toolCallId"`
	Title      string            `json:"title"`
	Name       string            `json:"name,omitempty"`
	Kind       string            `json:"kind" doc:"ACP tool kind: read, edit, delete, move, search, execute, think, fetch, switch_mode, other"`
	Status     string            `json:"status" enum:"pending,in_progress,completed,failed,cancelled"`
	Content    []json.RawMessage `json:"content,omitempty" doc:"ACP tool call content: content, diff, terminal"`
	Locations  []Location        `json:"locations,omitempty"`
	RawInput   json.RawMessage   `json:"rawInput,omitempty"`
	RawOutput  json.RawMessage   `json:"rawOutput,omitempty"`
	Cut        []Cut             `json:"cut,omitempty" doc:"Texts of the call that are shown without their middle"`
	Parent     string            `json:"parent,omitempty" doc:"Tool call that this tool call belongs to, such as the call of a subagent"`
	StartedAt  record.Time       `json:"startedAt"`
	EndedAt    *record.Time      `json:"endedAt,omitempty"`
}

// Terminal is a program that Deskhand ran for the agent, or an agent's own program whose output the agent sends. The entry's text is the
// newest output, unchanged, with escape sequences.
type Terminal struct {
	TerminalID string       `json:"terminalId" doc:"Id by which the content of tool calls names the terminal"`
	Command    string       `json:"command,omitempty"`
	Args       []string     `json:"args,omitempty"`
	Cwd        string       `json:"cwd,omitempty"`
	Running    bool         `json:"running"`
	ExitCode   *int         `json:"exitCode,omitempty"`
	Signal     string       `json:"signal,omitempty"`
	Skipped    int64        `json:"skipped,omitempty" doc:"Bytes of earlier output that are left out before the text"`
	StartedAt  record.Time  `json:"startedAt"`
	EndedAt    *record.Time `json:"endedAt,omitempty"`
}

// FileChange is a file that we have written for the agent.
type FileChange struct {
	Path    string          `json:"path"`
	Created bool            `json:"created,omitempty" doc:"The file did not exist before"`
	Bytes   int64           `json:"bytes" doc:"Size of the file after the change, in bytes"`
	Diff    json.RawMessage `json:"diff,omitempty" doc:"ACP diff; absent when a side is too long for a diff"`
}

// Compaction is a shortening of the agent's own memory of the conversation; the entry's text is the summary that replaces the memory.
type Compaction struct {
	CompactionID string       `json:"compactionId"`
	Status       string       `json:"status" doc:"in_progress, completed, failed, cancelled, or the status that the agent sent"`
	Error        string       `json:"error,omitempty"`
	StartedAt    record.Time  `json:"startedAt"`
	EndedAt      *record.Time `json:"endedAt,omitempty"`
}

// Location is a place in a file that a tool call touches; lines count from 1.
type Location struct {
	Path string `json:"path"`
	Line *int64 `json:"line,omitempty"`
}

// PlanItem is a step of the agent's plan.
type PlanItem struct {
	Content  string `json:"content"`
	Priority string `json:"priority,omitempty"`
	Status   string `json:"status,omitempty"`
}

// Notice is a message beside the conversation.
type Notice struct {
	Severity    string `json:"severity" doc:"info, warning, error or other"`
	Title       string `json:"title"`
	Description string `json:"description,omitempty"`
}

// Divider marks a change in the life of the session. Codes: agent.exited, agent.start_failed, session.resumed, session.loaded,
// session.fresh (the agent cannot restore the earlier conversation), session.hibernated (the agent was ended to save memory),
// app.interrupted, turn.interrupt_sent, turn.killed, turn.no_signal, messages.missing, agent.taken_up, workspace.moved (from, to),
// session.imported (messages: the entries above are the agent's history), session.imported_unseen (the agent shows no history),
// session.forked (session, title: the entries above are the parent's), session.branched (the same; the agent has not seen them).
type Divider struct {
	Code   string            `json:"code"`
	Params map[string]string `json:"params,omitempty"`
	Exit   *Exit             `json:"exit,omitempty"`
}

// dividers has the texts of the codes, as the window shows them.
//
//nolint:gochecknoglobals // a constant in all but name
var dividers = map[string]string{
	"agent.exited":            "{agent} ended",
	"agent.start_failed":      "{agent} could not be started",
	"agent.taken_up":          "Deskhand was away; {agent} kept running",
	"app.interrupted":         "Deskhand was interrupted here",
	"messages.missing":        "Messages are missing here: what {agent} said is no longer held",
	"session.branched":        "Branched here: {agent} has not seen what is above, and is given it as a file",
	"session.forked":          "Forked here: everything above is from the original conversation",
	"session.fresh":           "Continued without memory: {agent} cannot restore what was said above",
	"session.hibernated":      "{agent} was put to sleep to save memory; your next message wakes it",
	"session.imported":        "Imported from {agent}; messages: {messages}",
	"session.imported_unseen": "Imported from {agent}, which knows what was said before but does not show it",
	"session.loaded":          "{agent} restarted and read the conversation",
	"session.resumed":         "{agent} restarted and resumed the conversation",
	"turn.interrupt_sent":     "{agent} did not stop when asked: interrupt sent",
	"turn.killed":             "{agent} did not stop: its processes were ended",
	"turn.no_signal":          "{agent} did not stop when asked; it cannot be interrupted, so it is ended next",
	"workspace.moved":         "The directory moved from {from} to {to}",
}

// Words returns the text of a divider for a person; agent is the agent's name.
func (d *Divider) Words(agent string) string {
	text, ok := dividers[d.Code]
	if !ok {
		return "Session change: " + d.Code
	}
	if d.Exit != nil && d.Exit.Params["detail"] != "" {
		text += ": {detail}"
	}
	values := []string{"{agent}", agent}
	if d.Exit != nil {
		values = append(values, "{detail}", d.Exit.Params["detail"])
	}
	for name, value := range d.Params {
		values = append(values, "{"+name+"}", value)
	}
	return strings.NewReplacer(values...).Replace(text)
}

// Append is the data of an entry.append event: text added to the end of one field.
type Append struct {
	ID     string `json:"id" doc:"Id of the entry"`
	Field  string `json:"field" enum:"text"`
	Text   string `json:"text"`
	Offset int    `json:"offset" doc:"Length of the field before this delta, in UTF-16 units; a reader that has more of the field skips the difference"`
}

// RuleAnswer is the data of an entry of kind rule: an answer that nobody was asked for.
type RuleAnswer struct {
	ID       string `json:"id" doc:"Id of the rule, which may have been removed since. Removing the rule revokes the reason of the answer"`
	Effect   string `json:"effect" enum:"allow,deny"`
	Scope    string `json:"scope" enum:"session,directory,everywhere"`
	Text     string `json:"text"`
	Request  string `json:"request" doc:"Id of the request; empty when nothing was asked because the agent wanted to run a program that a rule denies"`
	Title    string `json:"title" doc:"Title of the request, or the command"`
	OptionID string `json:"optionId" doc:"Id of the agent's option that was answered; empty without a request"`
	Builtin  bool   `json:"builtin,omitempty" doc:"The rule cannot be removed"`
}

// unbegun returns the text for a conversation that could not begin in its mode or with its model; "" for any other end.
func (x *Exit) unbegun() string {
	p, offers := x.Params, "it offers none"
	if p["offers"] != "" {
		offers = "it offers " + p["offers"]
	}
	switch x.Problem {
	case ProblemStartMode:
		return fmt.Sprintf("%s has no mode %s, and nothing was sent: %s", p["agent"], p["value"], offers)
	case ProblemStartModel:
		return fmt.Sprintf("%s has no model %s, and nothing was sent: %s", p["agent"], p["value"], offers)
	case ProblemStartRefused:
		return fmt.Sprintf("%s did not change its %s to %s, and nothing was sent", p["agent"], p["option"], p["value"])
	case ProblemStartUnasked:
		return fmt.Sprintf("%s would begin in the mode %s, which may decide by itself, and has no mode that is known to ask. Nothing was sent; choose a mode: %s", p["agent"], p["value"], offers)
	}
	return ""
}

// Straggler is a command that runs on though its turn was stopped.
type Straggler struct {
	ID         string       `json:"id" doc:"Id of the group of processes, never used again"`
	Command    string       `json:"command" doc:"Command that the agent ran; of a process left behind by that command, the process's command line"`
	ToolCallID string       `json:"toolCallId" doc:"Tool call that started the command"`
	Title      string       `json:"title" doc:"Title of that tool call"`
	PID        int          `json:"pid" doc:"Process id of the oldest process"`
	Processes  int          `json:"processes" doc:"Number of processes when the straggler was noticed"`
	Running    bool         `json:"running"`
	StartedAt  record.Time  `json:"startedAt"`
	EndedAt    *record.Time `json:"endedAt,omitempty"`
	EndedBy    string       `json:"endedBy,omitempty" enum:"person,agent" doc:"person: a person ended the command here. agent: the command ended with the agent's process. Absent: the command ended by itself"`
}

// Words returns the text of a straggler for a person.
func (s *Straggler) Words() string {
	words := s.Command
	if s.Title != "" && strings.Trim(s.Title, "`") != s.Command {
		words += ", started by " + s.Title
	}
	switch {
	case s.Running:
		return "Still running: " + words
	case s.EndedBy == EndedByPerson:
		return "Ended: " + words
	case s.EndedBy == endedByAgent:
		return "Ended with the agent: " + words
	}
	return "Has ended meanwhile: " + words
}

// hasExited reports whether the program's own end was reported, rather than the end of its turn.
func (e *Entry) hasExited() bool {
	return !e.Terminal.Running && (e.Terminal.ExitCode != nil || e.Terminal.Signal != "")
}

// isGoingOn reports whether an entry is not over.
func (e *Entry) isGoingOn() bool {
	switch {
	case e.Tool != nil:
		return e.goesOn()
	case e.Terminal != nil:
		return e.Terminal.Running
	case e.Compaction != nil:
		return e.Compaction.Status == "in_progress"
	case e.Straggler != nil:
		return e.Straggler.Running
	}
	return false
}

// CutOff ends an entry that is not over, and reports whether there was anything to end.
func (e *Entry) CutOff(now record.Time) bool {
	switch {
	case !e.isGoingOn():
		return false
	case e.Tool != nil:
		e.Tool.Status, e.Tool.EndedAt = "cancelled", &now
	case e.Terminal != nil:
		e.Terminal.Running, e.Terminal.EndedAt = false, &now
	case e.Straggler != nil:
		e.Straggler.Running, e.Straggler.EndedAt, e.Straggler.EndedBy = false, &now, endedByAgent
	default:
		e.Compaction.Status, e.Compaction.EndedAt = "cancelled", &now
	}
	return true
}

// goesOn tells of a tool call that is not over.
func (e *Entry) goesOn() bool { return e.Tool.Status == "pending" || e.Tool.Status == "in_progress" }

// hasEnded reports whether the tool call's own end was reported, rather than the end of its turn.
func (e *Entry) hasEnded() bool { return e.Tool.Status == "completed" || e.Tool.Status == "failed" }

// hasRoom tells whether a block can be added to those that an entry has.
func (e *Entry) hasRoom(block json.RawMessage) bool {
	size := len(block)
	for _, b := range e.Blocks {
		size += len(b)
	}
	return len(e.Blocks) == 0 || len(e.Blocks) < mostBlocks && size <= maxBlocks
}

// givesWay reports whether a patch with the id of this call begins another call: this call was cut off with another turn, or this call has
// ended, and the patch is of a running call or has other contents. A patch that only repeats the end of this call begins no other call.
func (e *Entry) givesWay(turn string, p acp.ToolCallPatch, patch func(*ToolCall, acp.ToolCallPatch)) bool {
	if turn != "" && e.Turn != turn && e.Tool.Status == "cancelled" {
		return true
	}
	if !e.hasEnded() {
		return false
	}
	if p.Status == nil || *p.Status == "pending" || *p.Status == "in_progress" { // a call without a status is pending
		return true
	}
	after := *e.Tool
	patch(&after, p)
	return e.Tool.loses(after)
}

// loses reports whether a field of the call is missing from the call after.
func (t *ToolCall) loses(after ToolCall) bool {
	text := func(was, now string) bool { return was != "" && was != now }
	raw := func(was, now json.RawMessage) bool { return len(was) > 0 && !bytes.Equal(was, now) }
	return text(t.Title, after.Title) || text(t.Name, after.Name) || raw(t.RawInput, after.RawInput) || raw(t.RawOutput, after.RawOutput) ||
		len(t.Content) > 0 && !slices.EqualFunc(t.Content, after.Content, func(a, b json.RawMessage) bool { return bytes.Equal(a, b) })
}

// Words returns the text for a person: how an agent process ended, or why no process started. agent is the agent's name.
func (x *Exit) Words(agent string) string {
	if text := x.unbegun(); text != "" {
		return text
	}
	if x.Problem != ProblemExited {
		detail := x.Params["detail"]
		if detail == "" {
			_, detail, _ = strings.Cut(x.Problem, ".")
			detail = strings.ReplaceAll(detail, "_", " ")
		}
		return agent + " could not be started: " + detail + x.Status()
	}
	return agent + " ended" + x.Status()
}

// Status returns the exit code and the signal of the process as text, as far as there are any.
func (x *Exit) Status() (text string) {
	if x.Code != nil {
		text += fmt.Sprintf(", exit code %d", *x.Code)
	}
	if x.Signal != "" {
		text += ", " + x.Signal
	}
	return text
}

// Clipped reports whether a text that is decided about was cut: of the title, the input or the content of the tool call.
func (t *ToolCall) Clipped() bool {
	return slices.ContainsFunc(t.Cut, func(c Cut) bool { return !strings.HasPrefix(c.Path, "/rawOutput") })
}

// SearchText returns the text by which a search finds an entry: spoken text, and the input and output of tools and programs.
func (e *Entry) SearchText() string {
	if !e.Complete() {
		return ""
	}
	switch e.Kind {
	case "agent", "thought", "compaction", "message":
		return e.Text
	case "subagent":
		return strings.TrimSpace(e.Subagent.Title + "\n" + e.Subagent.Description)
	case "user", "attachment":
		lines := []string{e.Text}
		for _, a := range e.Attachments {
			lines = append(lines, a.Filename)
		}
		return strings.Join(lines, "\n")
	case "notice":
		return e.Notice.Title + "\n" + e.Notice.Description
	case "plan":
		lines := []string{e.Text}
		for _, p := range e.Plan {
			lines = append(lines, p.Content)
		}
		return strings.TrimSpace(strings.Join(lines, "\n"))
	case "tool":
		return e.Tool.searchText()
	case "terminal":
		return e.Terminal.searchText(e.Text)
	case "file":
		return e.File.searchText()
	}
	return ""
}

// Complete reports whether an entry has the part that its kind names. An entry that was damaged on the disk may lack that part.
func (e *Entry) Complete() bool {
	switch e.Kind {
	case "notice":
		return e.Notice != nil
	case "tool":
		return e.Tool != nil
	case "terminal":
		return e.Terminal != nil
	case "file":
		return e.File != nil
	case "straggler":
		return e.Straggler != nil
	case "subagent":
		return e.Subagent != nil
	}
	return true
}

func (t *ToolCall) searchText() string {
	var found findable
	found.add(t.Title)
	for _, l := range t.Locations {
		found.add(l.Path)
	}
	var input map[string]any
	if json.Unmarshal(t.RawInput, &input) == nil {
		for _, key := range []string{"command", "cmd", "script", "description", "query", "pattern", "url"} {
			eachText(input[key], found.add)
		}
	}
	for _, raw := range t.Content {
		var c struct {
			Path    string `json:"path"`
			NewText string `json:"newText"`
			Output  string `json:"output"`
			Content struct {
				Text string `json:"text"`
			} `json:"content"`
		}
		if json.Unmarshal(raw, &c) == nil {
			found.add(c.Path)
			found.printed(c.Content.Text)
			found.printed(c.Output)
			found.add(c.NewText)
		}
	}
	var output any
	if json.Unmarshal(t.RawOutput, &output) == nil {
		eachText(output, found.printed)
	}
	return found.text.String()
}

func (t *Terminal) searchText(output string) string {
	if t.Running && len(output) > runningOutput {
		output = output[tailStart(output, runningOutput):]
	}
	var found findable
	found.add(strings.TrimSpace(t.Command + " " + strings.Join(t.Args, " ")))
	found.printed(output)
	return found.text.String()
}

func (f *FileChange) searchText() string {
	var diff struct {
		NewText string `json:"newText"`
	}
	_ = json.Unmarshal(f.Diff, &diff) // of a long file there is none
	var found findable
	found.add(f.Path)
	found.add(diff.NewText)
	return found.text.String()
}
