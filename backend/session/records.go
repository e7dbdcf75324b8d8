package session

import (
	"encoding/json"
	"strings"

	"deskhand/backend/record"
	"deskhand/backend/rulebook"
)

// The records of the client API: what the window, a browser, the command line and the tests see. Ids are UUIDv7, times are
// UTC with milliseconds. The JSON names are the contract; the frontend's types are generated from here.

// Time is an instant as the client API writes it: RFC 3339, milliseconds, UTC.
type Time = record.Time

const timeLayout = record.TimeLayout

// Phase is where a session is in its life.
type Phase string

// The phases of a session. Ready is idle with a live agent; Closed has no agent process: with an Exit it failed, without one
// it sleeps, and the next prompt wakes it.
const (
	Starting   Phase = "starting"
	Replaying  Phase = "replaying"
	Ready      Phase = "ready"
	Working    Phase = "working"
	Waiting    Phase = "waiting"
	Cancelling Phase = "cancelling"
	Closed     Phase = "closed"
)

// Session is the user's record of one conversation.
type Session struct {
	ID              string         `json:"id"`
	Title           string         `json:"title" doc:"Empty until the first prompt names it"`
	Labels          []string       `json:"labels"`
	Pinned          bool           `json:"pinned"`
	Place           string         `json:"place" doc:"Where the session runs: the id of a place"`
	Workspace       Workspace      `json:"workspace"`
	Cwd             string         `json:"cwd"`
	Worktree        *Worktree      `json:"worktree,omitempty" doc:"Of one whose directory is a work tree that was made for a session"`
	Directories     []string       `json:"directories" doc:"Directories that it works in beside cwd; the agent is told of them at its next start, if it takes them"`
	Agent           string         `json:"agent" doc:"The agent's id, as in /client/agents"`
	AgentName       string         `json:"agentName"`
	ACPSessionID    string         `json:"acpSessionId,omitempty"`
	ProtocolVersion int            `json:"protocolVersion,omitempty"`
	Generation      int64          `json:"generation" doc:"Which life of the agent process; 0 before the first"`
	Phase           Phase          `json:"phase" enum:"starting,replaying,ready,working,waiting,cancelling,closed"`
	Step            string         `json:"step,omitempty" enum:"resolve,spawn,initialize,session" doc:"How far a start has come"`
	StepSince       *Time          `json:"stepSince,omitempty" doc:"Since when the start is at this step"`
	Line            *Line          `json:"line,omitempty" doc:"While the line to an agent elsewhere is broken"`
	Hibernated      bool           `json:"hibernated,omitempty" doc:"Closed to save memory: the next prompt wakes the agent"`
	Turn            *Turn          `json:"turn,omitempty" doc:"The running turn"`
	Queue           int            `json:"queue" doc:"How many prompts wait behind the turn, or for a person"`
	Waiting         int            `json:"waiting" doc:"How many requests wait for a person"`
	ConfigOptions   []ConfigOption `json:"configOptions"`
	Modes           []ModeMark     `json:"modes,omitempty" doc:"Of the values of its option of category mode, those in which the agent does not ask for sure before it changes something"`
	Commands        []Command      `json:"commands"`
	Usage           *Usage         `json:"usage,omitempty"`
	Offers          []string       `json:"offers" enum:"fork,steer,close,delete,list,directories" doc:"What its agent can do beside the usual, as it said when it was last started"`
	Origin          *Origin        `json:"origin,omitempty" doc:"Where it comes from, when it was not begun here from nothing"`
	Exit            *Exit          `json:"exit,omitempty" doc:"How the agent ended or why it did not start; gone after a restart"`
	Unread          bool           `json:"unread"`
	Draft           string         `json:"draft" doc:"What stands in the composer, unsent"`
	Attachments     []Attachment   `json:"attachments" doc:"The files of the draft, in order, with how each would travel to this agent"`
	CreatedAt       Time           `json:"createdAt"`
	UpdatedAt       Time           `json:"updatedAt" doc:"When something last happened in it; lists are sorted by it"`
	ArchivedAt      *Time          `json:"archivedAt,omitempty"`
}

// Origin is where a session comes from.
type Origin struct {
	Kind    string `json:"kind" enum:"fork,continue,import"`
	Session string `json:"session,omitempty" doc:"Of a fork or a continuation: the session before it; it may be gone"`
	Title   string `json:"title,omitempty" doc:"What that one was called then"`
	Agent   string `json:"agent,omitempty" doc:"The agent of that one, or from which it was imported"`
}

// Workspace is a directory with an identity that survives a move.
type Workspace struct {
	ID      string `json:"id"`
	Path    string `json:"path"`
	Missing bool   `json:"missing,omitempty" doc:"The directory is not there now"`
}

// Exit tells how an agent process ended, or why it could not be started (then Code is absent and Problem tells).
type Exit struct {
	Code       *int              `json:"code,omitempty"`
	Signal     string            `json:"signal,omitempty"`
	StderrTail string            `json:"stderrTail,omitempty" doc:"The last lines, at most 8 KiB"`
	Problem    string            `json:"problem,omitempty" doc:"A stable code: agent.unknown, agent.not_installed, agent.file_broken, agent.spawn_failed, agent.exited, agent.handshake_failed, agent.auth_required, agent.protocol, agent.no_answer, agent.mode_lost, start.mode, start.model, start.refused, start.unasked, directory.missing, session.interrupted, session.import_failed, session.import_unsupported; of agents elsewhere place.unknown, place.unreachable, place.refused, place.problem, place.gone, place.unended"`
	Params     map[string]string `json:"params,omitempty"`
	At         Time              `json:"at"`
}

// Turn is one prompt until its stop.
type Turn struct {
	ID         string          `json:"id"`
	Session    string          `json:"session"`
	State      string          `json:"state" enum:"running,requires_action,done"`
	StopReason string          `json:"stopReason,omitempty" doc:"ACP's end_turn, max_tokens, max_turn_requests, refusal, cancelled; ours: error, agent_exited, interrupted"`
	Error      *TurnError      `json:"error,omitempty"`
	StartedAt  Time            `json:"startedAt"`
	EndedAt    *Time           `json:"endedAt,omitempty"`
	Usage      json.RawMessage `json:"usage,omitempty" doc:"As the agent reported it"`
	Changes    *TurnChanges    `json:"changes,omitempty" doc:"What became of the directory's files; absent while it runs, and of turns of before there were snapshots"`

	prompt      []json.RawMessage // content blocks, for the agent
	attachments []Attachment      // what becomes more of them, once it is known what the agent takes
	back        bool              // it was taken back
	again       string            // the item of the queue that it was made then; "" = the draft
}

// TurnError is the agent's JSON-RPC error that ended a turn, or the start that the turn waited for.
type TurnError struct {
	Code    int64  `json:"code"`
	Message string `json:"message" doc:"The agent's message, and behind it what the data of its error says beyond that"`
}

// Usage is how full the agent's context is.
type Usage struct {
	Used int64 `json:"used"`
	Size int64 `json:"size"`
	Cost *Cost `json:"cost,omitempty"`
}

// Cost is what the session has cost so far.
type Cost struct {
	Amount   float64 `json:"amount"`
	Currency string  `json:"currency"`
}

// ConfigOption is one setting that the agent offers (mode, model, thought level...). An agent's older modes are shown as one of
// category mode.
type ConfigOption struct {
	ID          string         `json:"id"`
	Name        string         `json:"name"`
	Description string         `json:"description,omitempty"`
	Category    string         `json:"category,omitempty"`
	Type        string         `json:"type" doc:"select or boolean; others are shown but cannot be changed"`
	Value       string         `json:"value,omitempty" doc:"The chosen value of a select"`
	Checked     bool           `json:"checked,omitempty" doc:"The state of a boolean"`
	Choices     []ConfigChoice `json:"choices,omitempty"`
}

// ConfigChoice is one value of a select; Group is the heading it stands under.
type ConfigChoice struct {
	Value       string `json:"value"`
	Name        string `json:"name"`
	Description string `json:"description,omitempty"`
	Group       string `json:"group,omitempty"`
}

// Command is a slash command of the agent.
type Command struct {
	Name        string `json:"name"`
	Description string `json:"description,omitempty"`
	Hint        string `json:"hint,omitempty" doc:"What the command takes after its name"`
}

// Entry is one item of a transcript; Kind tells which of the other fields are there:
//
//	user                  Text, Blocks, Attachments: what travelled with it
//	agent, thought        Text, Blocks
//	attachment            Attachments: one file that the agent gives
//	tool                  Tool
//	plan                  Plan
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
	Seq        int64             `json:"seq" doc:"The order within the session"`
	At         Time              `json:"at"`
	Kind       string            `json:"kind" enum:"user,agent,thought,tool,plan,request,rule,notice,divider,terminal,file,attachment,compaction,straggler,raw"`
	Text       string            `json:"text,omitempty"`
	Clipped    int               `json:"clipped,omitempty" doc:"How many bytes of the text are left out here; …/entries/{entry}/text has all"`
	Blocks     []json.RawMessage `json:"blocks,omitempty" doc:"ACP content blocks that are not text"`
	Tool       *ToolCall         `json:"tool,omitempty"`
	Plan       []PlanItem        `json:"plan,omitempty"`
	Request    string            `json:"request,omitempty"`
	Rule       *RuleAnswer       `json:"rule,omitempty"`
	Notice     *Notice           `json:"notice,omitempty"`
	Divider    *Divider          `json:"divider,omitempty"`
	Terminal   *Terminal         `json:"terminal,omitempty"`
	File       *FileChange       `json:"file,omitempty"`
	Compaction *Compaction       `json:"compaction,omitempty"`
	Straggler  *Straggler        `json:"straggler,omitempty"`

	Attachments []Attachment `json:"attachments,omitempty"`

	Raw    json.RawMessage `json:"raw,omitempty"`
	Reason string          `json:"reason,omitempty" doc:"Why raw: unknown_update, broken_update, unknown_method, invalid_stdout, other_session"`
}

// ToolCall is the state of one tool call of the agent.
type ToolCall struct {
	ToolCallID string            `json:"toolCallId"`
	Title      string            `json:"title"`
	Name       string            `json:"name,omitempty"`
	Kind       string            `json:"kind" doc:"ACP's read, edit, delete, move, search, execute, think, fetch, switch_mode, other"`
	Status     string            `json:"status" enum:"pending,in_progress,completed,failed,cancelled"`
	Content    []json.RawMessage `json:"content,omitempty" doc:"ACP tool call content: content, diff, terminal"`
	Locations  []Location        `json:"locations,omitempty"`
	RawInput   json.RawMessage   `json:"rawInput,omitempty"`
	RawOutput  json.RawMessage   `json:"rawOutput,omitempty"`
	Parent     string            `json:"parent,omitempty" doc:"The tool call that it belongs to, such as a subagent's"`
	StartedAt  Time              `json:"startedAt"`
	EndedAt    *Time             `json:"endedAt,omitempty"`
}

// Terminal is a program that the agent has had us run, or of which it shows what it wrote. That is the entry's text: the newest of it,
// as it came, with escape sequences.
type Terminal struct {
	TerminalID string   `json:"terminalId" doc:"Content of tool calls names it"`
	Command    string   `json:"command,omitempty"`
	Args       []string `json:"args,omitempty"`
	Cwd        string   `json:"cwd,omitempty"`
	Running    bool     `json:"running"`
	ExitCode   *int     `json:"exitCode,omitempty"`
	Signal     string   `json:"signal,omitempty"`
	Skipped    int64    `json:"skipped,omitempty" doc:"How many bytes of its output are left out: they stood before the text"`
	StartedAt  Time     `json:"startedAt"`
	EndedAt    *Time    `json:"endedAt,omitempty"`
}

// FileChange is a file that we have written for the agent.
type FileChange struct {
	Path    string          `json:"path"`
	Created bool            `json:"created,omitempty" doc:"It was not there before"`
	Bytes   int64           `json:"bytes" doc:"Its size now"`
	Diff    json.RawMessage `json:"diff,omitempty" doc:"An ACP diff, where neither side is too long for it"`
}

// Compaction is the agent shortening its own memory of the conversation; the entry's text is what it keeps in its place.
type Compaction struct {
	CompactionID string `json:"compactionId"`
	Status       string `json:"status" doc:"in_progress, completed, failed, cancelled, or what the agent sent"`
	Error        string `json:"error,omitempty"`
	StartedAt    Time   `json:"startedAt"`
	EndedAt      *Time  `json:"endedAt,omitempty"`
}

// Location is a place in a file that a tool call touches; lines count from 1.
type Location struct {
	Path string `json:"path"`
	Line *int64 `json:"line,omitempty"`
}

// PlanItem is one step of the agent's plan.
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
// session.imported (messages: what stands above is the agent's history), session.imported_unseen (it shows none), session.forked (session,
// title: what stands above was said there).
type Divider struct {
	Code   string            `json:"code"`
	Params map[string]string `json:"params,omitempty"`
	Exit   *Exit             `json:"exit,omitempty"`
}

// dividers says what the codes mean, as the window does.
//
//nolint:gochecknoglobals // a constant in all but name
var dividers = map[string]string{
	"agent.exited":            "{agent} ended",
	"agent.start_failed":      "{agent} could not be started",
	"agent.taken_up":          "Deskhand was away; {agent} kept running",
	"app.interrupted":         "Deskhand was interrupted here",
	"messages.missing":        "Messages are missing here: what {agent} said is no longer held",
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

// Words is what a divider tells a person; agent is its name.
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

// Request is something of an agent that waits for a person, and its end.
type Request struct {
	ID          string          `json:"id"`
	Session     string          `json:"session"`
	Turn        string          `json:"turn,omitempty"`
	Generation  int64           `json:"generation"`
	Kind        string          `json:"kind" enum:"permission,form,url,question,raw,trust"`
	Agent       string          `json:"agent" doc:"The agent's name, to be shown"`
	Title       string          `json:"title"`
	Detail      string          `json:"detail,omitempty"`
	ToolCallID  string          `json:"toolCallId,omitempty" doc:"The tool call a permission is for; its entry holds diff and command"`
	Tool        *ToolCall       `json:"tool,omitempty" doc:"That tool call as the request told it"`
	Options     []RequestOption `json:"options" doc:"Of a permission: exactly what the agent offers, in its order"`
	Clipped     bool            `json:"clipped,omitempty" doc:"Of a permission: not all of its tool call is in this record; requests/{id}/parts has all of what is decided"`
	Frame       int64           `json:"frame,omitempty" doc:"Of a permission: the number of its message in the session's journal"`
	Told        int64           `json:"told,omitempty" doc:"Of a permission: the number of the message in which its tool call was first told"`
	Choice      bool            `json:"choice,omitempty" doc:"Of a permission: it asks how to go on, and not whether to, so that only a person answers it: no rule, no flag, and no button that allows without a look at the options"`
	Schema      json.RawMessage `json:"schema,omitempty" doc:"Of a form: the JSON Schema asked for"`
	Questions   []Question      `json:"questions,omitempty" doc:"Of a question"`
	QuestionID  string          `json:"questionId,omitempty" doc:"Of a question: the agent's own id of it"`
	URL         string          `json:"url,omitempty" doc:"Of an address to open: the whole of it, as a browser gets it"`
	Host        string          `json:"host,omitempty" doc:"Where it leads: the name in ASCII, with its port"`
	HostUnicode string          `json:"hostUnicode,omitempty" doc:"How that name may be shown elsewhere, with punycode"`
	Punycode    bool            `json:"punycode,omitempty" doc:"Its name is not ASCII, and may look like another one"`
	Raw         json.RawMessage `json:"raw,omitempty" doc:"Of a raw request: the whole message"`
	Executables []Executable    `json:"executables,omitempty" doc:"Of a trust request: what waits to be approved"`
	Status      string          `json:"status" enum:"requested,answered,rejected,cancelled,expired"`
	Answer      json.RawMessage `json:"answer,omitempty" doc:"What was answered: {optionId}, {action,content} or {answers}"`
	AnsweredBy  string          `json:"answeredBy,omitempty" doc:"The surface: window, native, browser, cli, editor, discord, api; rule, where nobody was asked; agent, where it said itself that it is done"`
	Rule        *RequestRule    `json:"rule,omitempty" doc:"The rule that has answered it"`
	CreatedAt   Time            `json:"createdAt"`
	ResolvedAt  *Time           `json:"resolvedAt,omitempty"`

	ElicitationID string `json:"elicitationId,omitempty" doc:"Of an address to open: the agent's name for what is to be done there"`
	CompletedAt   *Time  `json:"completedAt,omitempty" doc:"When the agent said that it is done there"`
}

// RequestOption is one button of a permission.
type RequestOption struct {
	ID   string `json:"id"`
	Name string `json:"name"`
	Kind string `json:"kind" doc:"allow_once, allow_always, reject_once, reject_always, or what the agent sent"`

	Label string `json:"label,omitempty" doc:"The name as people should read it: unseen characters are written by their numbers, a missing name is made of the kind, and what the option does stands beside a name that would mislead about it"`
}

// Question is one question of a question request.
type Question struct {
	ID            string           `json:"id,omitempty" doc:"The agent's own id of this question, where it has asked several at once and gives each one"`
	Prompt        string           `json:"prompt"`
	Options       []QuestionOption `json:"options"`
	MultiSelect   bool             `json:"multiSelect,omitempty"`
	AllowFreeText bool             `json:"allowFreeText,omitempty"`
}

// QuestionOption is one choice; where the agent gives no id, its label is its id.
type QuestionOption struct {
	ID          string `json:"id"`
	Label       string `json:"label"`
	Description string `json:"description,omitempty"`
}

// Answer is what a person answers to a request: exactly one of OptionID (permission), Action (form, url; raw: only cancel) or
// Answers (question: one list of chosen ids or free text a question; Reject instead turns it down).
type Answer struct {
	OptionID string          `json:"optionId,omitempty"`
	Action   string          `json:"action,omitempty" enum:"accept,decline,cancel"`
	Content  json.RawMessage `json:"content,omitempty" doc:"With accept: an object that fits the schema"`
	Answers  [][]string      `json:"answers,omitempty"`
	Reject   bool            `json:"reject,omitempty"`

	Remember *rulebook.Remember `json:"remember,omitempty" doc:"Of a permission: makes a rule of the answer. The agent is answered for once then, where it offers that"`
	Note     string             `json:"note,omitempty" maxLength:"10000" doc:"Of a permission that is rejected: words that the agent gets as a message, within the turn where it takes that, else as the next prompt"`
}

// Append is the data of an entry.append event: text added to the end of one field.
type Append struct {
	ID     string `json:"id" doc:"The entry"`
	Field  string `json:"field" enum:"text"`
	Text   string `json:"text"`
	Offset int    `json:"offset" doc:"The field's length before, in UTF-16 units: a reader that already has more skips that much"`
}

// Event is one entry of the client's event feed.
type Event struct {
	Seq     int64           `json:"seq"`
	At      Time            `json:"at"`
	Session string          `json:"session,omitempty"`
	Type    string          `json:"type"`
	Data    json.RawMessage `json:"data"`

	weight int // in bytes, of what is put into the data when it leaves
}
