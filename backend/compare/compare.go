// Package compare puts the same prompt to several agents, each in a worktree of its own from the same commit, and compares what they make of it.
//
// A Comparison names its members by the ids of their sessions. The ids are stored before the sessions are made, so that a comparison that a crash
// has cut off knows which of its members have not begun; such a member is begun again with [Library.Begin]. The members are ordinary sessions in
// ordinary worktrees: whatever can be done with those can be done with these, and taking one of them removes the other worktrees the way every
// worktree is removed, with what is uncommitted kept. The package owns the table comparison.
package compare

import (
	"context"
	"log/slog"
	"sync"

	"deskhand/backend/agents"
	"deskhand/backend/attachments"
	"deskhand/backend/entries"
	"deskhand/backend/landing"
	"deskhand/backend/record"
	"deskhand/backend/session"
	"deskhand/backend/setup"
	"deskhand/backend/store"
	"deskhand/backend/transcript"
)

// The limits of the number of members.
const (
	Least = 2
	Most  = 4
)

// Types of events.
const (
	eventComparison = "comparison.upsert"
	eventRemoved    = "comparison.removed"
)

// Comparison is a prompt that several agents were given.
type Comparison struct {
	ID         string      `json:"id"`
	Title      string      `json:"title" doc:"Of the first member, or the beginning of the prompt"`
	Cwd        string      `json:"cwd" doc:"Directory that the members' directories stand for"`
	Repository string      `json:"repository" doc:"Worktree that the directory is in"`
	Base       string      `json:"base,omitempty" doc:"Branch with which the members' worktrees began; absent where that was a commit"`
	Commit     string      `json:"commit" doc:"Commit with which the members' worktrees began"`
	Members    []Member    `json:"members" doc:"In the order in which they were named; those whose sessions were deleted are left out"`
	Taken      string      `json:"taken,omitempty" doc:"Session of the member that a person has taken; absent until then"`
	CreatedAt  record.Time `json:"createdAt"`
}

// ComparisonRemoved is the data of the event that a comparison was dissolved.
type ComparisonRemoved struct {
	ID string `json:"id"`
}

// Member is an agent of a comparison.
type Member struct {
	Session string   `json:"session" doc:"Id of its session"`
	Name    string   `json:"name" doc:"Name of the agent; of several with the same agent, with the model or a number"`
	Agent   string   `json:"agent"`
	Model   string   `json:"model,omitempty" doc:"Model that was asked for"`
	Mode    string   `json:"mode,omitempty" doc:"Mode that was asked for"`
	Begun   bool     `json:"begun" doc:"false: there is no session, see problem"`
	Problem string   `json:"problem,omitempty" doc:"Why the session could not be made, or why what is left of a member that was not taken could not be removed"`
	Refused *Refusal `json:"refused,omitempty" doc:"Of the problem; absent where it is no refusal"`
}

// Refusal is what a surface says a refusal in its own words by.
type Refusal struct {
	Code   string            `json:"code"`
	Params map[string]string `json:"params,omitempty"`
}

// MemberResult is what a member has made of the prompt, as far as it has come.
type MemberResult struct {
	Session  session.Session       `json:"session"`
	Name     string                `json:"name" doc:"As of the member"`
	Answer   string                `json:"answer,omitempty" doc:"The agent's last message, as Markdown"`
	Files    []landing.BaseFile    `json:"files" doc:"Files on disk that differ from the commit of the comparison"`
	Added    int                   `json:"added" doc:"Number of lines, in all files"`
	Removed  int                   `json:"removed" doc:"Number of lines, in all files"`
	Problem  string                `json:"problem,omitempty" doc:"Why the files are not known, such as a worktree that was removed"`
	Refused  *Refusal              `json:"refused,omitempty" doc:"Of the problem"`
	Turns    int                   `json:"turns"`
	Stopped  string                `json:"stopReason,omitempty" doc:"Of the newest turn, as of a turn; absent while it runs"`
	Error    *transcript.TurnError `json:"error,omitempty" doc:"Of the newest turn"`
	Worked   int64                 `json:"workedMs" doc:"Duration of the turns that have ended, in milliseconds"`
	Tokens   int64                 `json:"tokens,omitempty" doc:"Of all turns, as the agent counts them; absent where it tells none"`
	Cost     *transcript.Cost      `json:"cost,omitempty" doc:"Absent where the agent tells none"`
	Tests    *setup.TestRun        `json:"tests,omitempty" doc:"Newest run of the project's tests; absent where there was none"`
	Outdated bool                  `json:"testsOutdated,omitempty" doc:"A file was written after the tests ended"`
}

// Testing reports whether the tests run.
func (r MemberResult) Testing() bool { return r.Tests != nil && r.Tests.State == setup.Running }

// ComparisonResults is a comparison with what its members have made of the prompt.
type ComparisonResults struct {
	Comparison

	Message string         `json:"message" doc:"The prompt"`
	Results []MemberResult `json:"results" doc:"Of the members that have begun, in their order"`
	Test    *TestCommand   `json:"test,omitempty" doc:"Command of the project's tests; absent where it has none"`
}

// TestCommand is the command with which a project tests itself.
type TestCommand struct {
	Line     string `json:"line"`
	Hash     string `json:"hash" doc:"Of its content, with which a person approves the command"`
	Approved bool   `json:"approved"`
}

// NewComparison holds the parameters of Create.
type NewComparison struct {
	Cwd         string                         `json:"cwd" minLength:"1" maxLength:"4096" doc:"Absolute path of a directory in a git repository"`
	Base        string                         `json:"base,omitempty" maxLength:"1000" doc:"Branch, remote's branch or commit with which the worktrees begin; absent for the commit that is checked out"`
	Message     string                         `json:"message,omitempty" doc:"The prompt"`
	Attachments []attachments.PromptAttachment `json:"attachments,omitempty" maxItems:"100" doc:"What goes with the prompt"`
	Labels      []string                       `json:"labels,omitempty" maxItems:"20"`
	Members     []NewMember                    `json:"members" minItems:"2" maxItems:"4"`
}

// NewMember is an agent that is to be compared. The same agent may be named several times.
type NewMember struct {
	Agent string `json:"agent" minLength:"1" maxLength:"64"`
	Model string `json:"model,omitempty" maxLength:"1024" doc:"As of a new session"`
	Mode  string `json:"mode,omitempty" maxLength:"1024" doc:"As of a new session"`
}

// TakeFiles is the command to give files of a member the content that they have in another one.
type TakeFiles struct {
	From    string   `json:"from" maxLength:"64" doc:"Session of the member that has the content"`
	To      string   `json:"to" maxLength:"64" doc:"Session of the member whose files change"`
	Paths   []string `json:"paths" minItems:"1" maxItems:"10000" doc:"Relative to the repository, with slashes. A file that is absent in from is removed"`
	Preview bool     `json:"preview,omitempty" doc:"Tell what would happen, and change nothing"`
}

// Deps are the parts of the program that a Library uses.
type Deps struct {
	Store    *store.DB
	Sessions *session.Client
	Agents   *agents.Catalogue
	Setups   *setup.Library
	Clean    func(text string) string // takes secrets out of a text
	Logger   *slog.Logger
}

// Library is the comparisons of a data directory. Any goroutine may call its methods.
type Library struct {
	deps    Deps
	entries *entries.Library

	mu  sync.Mutex // protects all, and the fields of each row but its id
	all map[string]*row

	busyLock sync.Mutex // protects busy
	busy     map[string]bool
}

// Open reads the stored comparisons.
func Open(ctx context.Context, deps Deps) (*Library, error) {
	if deps.Logger == nil {
		deps.Logger = slog.New(slog.DiscardHandler)
	}
	l := &Library{deps: deps, entries: entries.New(deps.Store), all: map[string]*row{}, busy: map[string]bool{}}
	return l, l.load(ctx)
}
