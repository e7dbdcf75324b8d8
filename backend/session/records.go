package session

import (
	"encoding/json"

	"deskhand/backend/entries"
	"deskhand/backend/lifecycle"
	"deskhand/backend/record"
	"deskhand/backend/setup"
	"deskhand/backend/startmode"
	"deskhand/backend/transcript"
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
	Setup           *setup.Setup              `json:"setup,omitempty" doc:"Set-up of the session's worktree; absent where nothing is set up"`
	Worktree        *worktrees.Worktree       `json:"worktree,omitempty" doc:"Worktree that the session works in; absent where the session works in none"`
	Directories     []string                  `json:"directories" doc:"Directories that it works in beside cwd; the agent is told of them at its next start, if it takes them"`
	Agent           string                    `json:"agent" doc:"The agent's id, as in /client/agents"`
	AgentName       string                    `json:"agentName"`
	ACPSessionID    string                    `json:"acpSessionId,omitempty"`
	ProtocolVersion int                       `json:"protocolVersion,omitempty"`
	Generation      int64                     `json:"generation" doc:"Which life of the agent process; 0 before the first"`
	Phase           lifecycle.Phase           `json:"phase" enum:"starting,replaying,ready,working,waiting,cancelling,closed"`
	Step            string                    `json:"step,omitempty" enum:"resolve,spawn,initialize,session" doc:"How far a start has come"`
	Doing           string                    `json:"doing,omitempty" doc:"Title of the newest tool call that runs; absent when none does"`
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
	Subagent        *Subagent                 `json:"subagent,omitempty" doc:"Of a session that the agent of another session has begun for a part of its work"`
	Subagents       int                       `json:"subagents,omitempty" doc:"How many such sessions its agent has begun"`
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
	Kind    string `json:"kind" enum:"fork,branch,continue,import"`
	Session string `json:"session,omitempty" doc:"Of a fork, a branch or a continuation: the session before it; it may be gone"`
	Turn    string `json:"turn,omitempty" doc:"Of a branch: the turn of that session whose message is said differently here"`
	Title   string `json:"title,omitempty" doc:"What that one was called then"`
	Agent   string `json:"agent,omitempty" doc:"The agent of that one, or from which it was imported"`
}

// Subagent is what a session is that the agent of another session has begun.
type Subagent struct {
	Parent      string `json:"parent" doc:"Id of the session whose agent has begun this one"`
	Description string `json:"description,omitempty" doc:"What the subagent is for, as the agent says"`
	Cwd         string `json:"cwd,omitempty" doc:"Where the agent says that the subagent works; absent where that is the parent's directory"`
	Stoppable   bool   `json:"stoppable,omitempty" doc:"The work of the subagent alone can be stopped"`
}

// Turn is one prompt, until the agent stops.
type Turn struct {
	entries.Turn

	prompt      []json.RawMessage       // content blocks for the agent
	attachments []transcript.Attachment // files of the prompt; more content blocks are composed from them once the agent's capabilities are known
	back        bool                    // the message was given back to the draft or the queue
	again       string                  // the queue item that the message became; "" = none
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

// ModeMark is a mode of a session in which the agent is not known to ask.
type ModeMark struct {
	Value string              `json:"value"`
	Asks  startmode.Judgement `json:"asks" enum:"decides,settings,unknown"`
}

// Types of events.
const (
	eventSession = "session.upsert"
	eventEntry   = "entry.upsert"
	eventTurn    = "turn.upsert"
	eventRequest = "request.upsert"
	eventNotice  = "notice"

	eventQueue    = "queue.upsert"
	eventUnqueued = "queue.removed"
)

// mustJSON encodes a record of this program; such records always can be encoded.
func mustJSON(v any) json.RawMessage {
	return record.JSON(v)
}
