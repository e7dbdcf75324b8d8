package session

import (
	"encoding/json"

	"deskhand/backend/form"
	"deskhand/backend/launch"
	"deskhand/backend/lifecycle"
	"deskhand/backend/record"
	"deskhand/backend/rulebook"
	"deskhand/backend/startmode"
	"deskhand/backend/transcript"
	"deskhand/backend/undo"
	"deskhand/backend/workspace"
	"deskhand/backend/worktrees"
)

// The records of the client API, as the window, a browser, the command line and the tests get them. Ids are UUIDv7, times are UTC with
// milliseconds. The JSON names are the contract; the frontend's types are generated from these types.

// Time is an instant as the client API writes it: RFC 3339, milliseconds, UTC.
type Time = record.Time

const timeLayout = record.TimeLayout

// Session is the record of one conversation.
type Session struct {
	ID              string                    `json:"id"`
	Title           string                    `json:"title" doc:"Empty until the first prompt names it"`
	Labels          []string                  `json:"labels"`
	Pinned          bool                      `json:"pinned"`
	Place           string                    `json:"place" doc:"Where the session runs: the id of a place"`
	Workspace       workspace.Workspace       `json:"workspace"`
	Cwd             string                    `json:"cwd"`
	Worktree        *worktrees.Worktree       `json:"worktree,omitempty" doc:"Worktree that the session works in; absent where the session works in none"`
	Directories     []string                  `json:"directories" doc:"Directories that it works in beside cwd; the agent is told of them at its next start, if it takes them"`
	Agent           string                    `json:"agent" doc:"The agent's id, as in /client/agents"`
	AgentName       string                    `json:"agentName"`
	ACPSessionID    string                    `json:"acpSessionId,omitempty"`
	ProtocolVersion int                       `json:"protocolVersion,omitempty"`
	Generation      int64                     `json:"generation" doc:"Which life of the agent process; 0 before the first"`
	Phase           lifecycle.Phase           `json:"phase" enum:"starting,replaying,ready,working,waiting,cancelling,closed"`
	Step            string                    `json:"step,omitempty" enum:"resolve,spawn,initialize,session" doc:"How far a start has come"`
	StepSince       *Time                     `json:"stepSince,omitempty" doc:"Since when the start is at this step"`
	Line            *Line                     `json:"line,omitempty" doc:"While the line to an agent elsewhere is broken"`
	Hibernated      bool                      `json:"hibernated,omitempty" doc:"Closed to save memory: the next prompt wakes the agent"`
	Turn            *Turn                     `json:"turn,omitempty" doc:"The running turn"`
	Queue           int                       `json:"queue" doc:"How many prompts wait behind the turn, or for a person"`
	Waiting         int                       `json:"waiting" doc:"How many requests wait for a person"`
	ConfigOptions   []transcript.ConfigOption `json:"configOptions"`
	Modes           []ModeMark                `json:"modes,omitempty" doc:"Of the values of its option of category mode, those in which the agent does not ask for sure before it changes something"`
	Commands        []transcript.Command      `json:"commands"`
	Usage           *transcript.Usage         `json:"usage,omitempty"`
	Offers          []string                  `json:"offers" enum:"fork,steer,close,delete,list,directories" doc:"What its agent can do beside the usual, as it said when it was last started"`
	Origin          *Origin                   `json:"origin,omitempty" doc:"Where it comes from, when it was not begun here from nothing"`
	Exit            *transcript.Exit          `json:"exit,omitempty" doc:"How the agent ended or why it did not start; gone after a restart"`
	Unread          bool                      `json:"unread"`
	Draft           string                    `json:"draft" doc:"What stands in the composer, unsent"`
	Attachments     []transcript.Attachment   `json:"attachments" doc:"The files of the draft, in order, with how each would travel to this agent"`
	CreatedAt       Time                      `json:"createdAt"`
	UpdatedAt       Time                      `json:"updatedAt" doc:"When something last happened in it; lists are sorted by it"`
	ArchivedAt      *Time                     `json:"archivedAt,omitempty"`
}

// Origin tells what a session was made from.
type Origin struct {
	Kind    string `json:"kind" enum:"fork,continue,import"`
	Session string `json:"session,omitempty" doc:"Of a fork or a continuation: the session before it; it may be gone"`
	Title   string `json:"title,omitempty" doc:"What that one was called then"`
	Agent   string `json:"agent,omitempty" doc:"The agent of that one, or from which it was imported"`
}

// Turn is one prompt, until the agent stops.
type Turn struct {
	ID         string                `json:"id"`
	Session    string                `json:"session"`
	State      string                `json:"state" enum:"running,requires_action,done"`
	StopReason string                `json:"stopReason,omitempty" doc:"ACP's end_turn, max_tokens, max_turn_requests, refusal, cancelled; ours: error, agent_exited, interrupted"`
	Error      *transcript.TurnError `json:"error,omitempty"`
	StartedAt  Time                  `json:"startedAt"`
	EndedAt    *Time                 `json:"endedAt,omitempty"`
	Usage      json.RawMessage       `json:"usage,omitempty" doc:"As the agent reported it"`
	Changes    *undo.TurnChanges     `json:"changes,omitempty" doc:"What became of the directory's files; absent while it runs, and of turns of before there were snapshots"`

	prompt      []json.RawMessage       // content blocks for the agent
	attachments []transcript.Attachment // files of the prompt; more content blocks are composed from them once the agent's capabilities are known
	back        bool                    // the message was given back to the draft or the queue
	again       string                  // the queue item that the message became; "" = none
}

// Request is a request of an agent to a person, and its end.
type Request struct {
	ID          string               `json:"id"`
	Session     string               `json:"session"`
	Turn        string               `json:"turn,omitempty"`
	Generation  int64                `json:"generation"`
	Kind        string               `json:"kind" enum:"permission,form,url,question,raw,trust"`
	Agent       string               `json:"agent" doc:"The agent's name, to be shown"`
	Title       string               `json:"title"`
	Detail      string               `json:"detail,omitempty"`
	ToolCallID  string               `json:"toolCallId,omitempty" doc:"The tool call a permission is for; its entry holds diff and command"`
	Tool        *transcript.ToolCall `json:"tool,omitempty" doc:"That tool call as the request told it"`
	Options     []RequestOption      `json:"options" doc:"Of a permission: exactly what the agent offers, in its order"`
	Clipped     bool                 `json:"clipped,omitempty" doc:"Of a permission: not all of its tool call is in this record; requests/{id}/parts has all of what is decided"`
	Frame       int64                `json:"frame,omitempty" doc:"Of a permission: the number of its message in the session's journal"`
	Told        int64                `json:"told,omitempty" doc:"Of a permission: the number of the message in which its tool call was first told"`
	Choice      bool                 `json:"choice,omitempty" doc:"Of a permission: it asks how to go on, and not whether to, so that only a person answers it: no rule, no flag, and no button that allows without a look at the options"`
	Schema      json.RawMessage      `json:"schema,omitempty" doc:"Of a form: the JSON Schema asked for"`
	Questions   []Question           `json:"questions,omitempty" doc:"Of a question"`
	QuestionID  string               `json:"questionId,omitempty" doc:"Of a question: the agent's own id of it"`
	URL         string               `json:"url,omitempty" doc:"Of an address to open: the whole of it, as a browser gets it"`
	Host        string               `json:"host,omitempty" doc:"Where it leads: the name in ASCII, with its port"`
	HostUnicode string               `json:"hostUnicode,omitempty" doc:"How that name may be shown elsewhere, with punycode"`
	Punycode    bool                 `json:"punycode,omitempty" doc:"Its name is not ASCII, and may look like another one"`
	Raw         json.RawMessage      `json:"raw,omitempty" doc:"Of a raw request: the whole message"`
	Executables []launch.Executable  `json:"executables,omitempty" doc:"Of a trust request: what waits to be approved"`
	Status      string               `json:"status" enum:"requested,answered,rejected,cancelled,expired"`
	Answer      json.RawMessage      `json:"answer,omitempty" doc:"What was answered: {optionId}, {action,content} or {answers}"`
	AnsweredBy  string               `json:"answeredBy,omitempty" doc:"The surface: window, native, browser, cli, editor, discord, api; rule, where nobody was asked; agent, where it said itself that it is done"`
	Rule        *RequestRule         `json:"rule,omitempty" doc:"The rule that has answered it"`
	CreatedAt   Time                 `json:"createdAt"`
	ResolvedAt  *Time                `json:"resolvedAt,omitempty"`

	ElicitationID string `json:"elicitationId,omitempty" doc:"Of an address to open: the agent's name for what is to be done there"`
	CompletedAt   *Time  `json:"completedAt,omitempty" doc:"When the agent said that it is done there"`
}

// RequestOption is an option of a permission.
type RequestOption struct {
	ID   string `json:"id"`
	Name string `json:"name"`
	Kind string `json:"kind" doc:"allow_once, allow_always, reject_once, reject_always, or what the agent sent"`

	Label string `json:"label,omitempty" doc:"The name as people should read it: unseen characters are written by their numbers, a missing name is made of the kind, and what the option does stands beside a name that would mislead about it"`
}

// Question is one question of a request of kind question.
type Question struct {
	ID            string                `json:"id,omitempty" doc:"The agent's own id of this question, where it has asked several at once and gives each one"`
	Prompt        string                `json:"prompt"`
	Options       []form.QuestionOption `json:"options"`
	MultiSelect   bool                  `json:"multiSelect,omitempty"`
	AllowFreeText bool                  `json:"allowFreeText,omitempty"`
}

// Answer is a person's answer to a request. Exactly one field is set: OptionID (permission), Action (form, url; raw: only cancel) or
// Answers (question: one list of option ids or texts for each question), or Reject, which rejects a question.
type Answer struct {
	OptionID string          `json:"optionId,omitempty"`
	Action   string          `json:"action,omitempty" enum:"accept,decline,cancel"`
	Content  json.RawMessage `json:"content,omitempty" doc:"With accept: an object that fits the schema"`
	Answers  [][]string      `json:"answers,omitempty"`
	Reject   bool            `json:"reject,omitempty"`

	Remember *rulebook.Remember `json:"remember,omitempty" doc:"Of a permission: makes a rule of the answer. The agent is answered for once then, where it offers that"`
	Note     string             `json:"note,omitempty" maxLength:"10000" doc:"Of a permission that is rejected: words that the agent gets as a message, within the turn where it takes that, else as the next prompt"`
}

// Event is one entry of the client's event feed.
type Event struct {
	Seq     int64           `json:"seq"`
	At      Time            `json:"at"`
	Session string          `json:"session,omitempty"`
	Type    string          `json:"type"`
	Data    json.RawMessage `json:"data"`

	weight int // bytes that are added to the data when the event leaves the process
}

// Patch holds a person's changes to a session; nil leaves a field as it is.
type Patch struct {
	Title    *string   `json:"title,omitempty" maxLength:"200"`
	Labels   *[]string `json:"labels,omitempty" maxItems:"20"`
	Pinned   *bool     `json:"pinned,omitempty"`
	Archived *bool     `json:"archived,omitempty"`
	Unread   *bool     `json:"unread,omitempty"`
	Draft    *string   `json:"draft,omitempty" maxLength:"1048576"`

	Attachments *[]string `json:"attachments,omitempty" maxItems:"100" doc:"The ids of the files of the draft, in order: the whole list"`

	Directories *[]string `json:"directories,omitempty" maxItems:"20" doc:"The whole list of directories beside cwd; the agent is told of it at its next start"`
}

// Line is the state of a broken connection to a remote agent.
type Line struct {
	State  string `json:"state" enum:"broken,refused" doc:"broken: it is tried again, and nothing is lost that the runtime holds; refused: its token is"`
	Detail string `json:"detail,omitempty"`
	Since  Time   `json:"since"`
}

// RequestRule names the rule that has answered a request.
type RequestRule struct {
	ID     string `json:"id"`
	Effect string `json:"effect" enum:"allow,deny"`
	Text   string `json:"text"`
}

// QueueItem is a prompt that waits in the queue. The id of a QueueItem is the id of the turn that it becomes.
type QueueItem struct {
	ID        string `json:"id" doc:"Also of the turn that it becomes"`
	Session   string `json:"session"`
	Message   string `json:"message"`
	Position  int    `json:"position" doc:"0 is the first"`
	Held      string `json:"held,omitempty" enum:"stopped,failed,refused,exited,interrupted,archived,person,steering" doc:"Why it waits for a person, however the turn ends; absent while it does not. Steering: it is on its way into the running turn"`
	CreatedAt Time   `json:"createdAt"`

	Attachments []transcript.Attachment `json:"attachments,omitempty" doc:"What goes with it"`
}

const (
	eventQuestion         = "question.requested"
	eventQuestionResolved = "question.resolved"

	acceptURL = "accept"
)

// ModeMark is a mode of a session in which the agent is not known to ask.
type ModeMark struct {
	Value string              `json:"value"`
	Asks  startmode.Judgement `json:"asks" enum:"decides,settings,unknown"`
}
