package backend

import (
	"context"
	"io"

	"deskhand/backend/agents"
	"deskhand/backend/compare"
	"deskhand/backend/demoagent"
	"deskhand/backend/discord"
	"deskhand/backend/environ"
	"deskhand/backend/feed"
	"deskhand/backend/form"
	"deskhand/backend/httpapi"
	"deskhand/backend/inspect"
	"deskhand/backend/launch"
	"deskhand/backend/permission"
	"deskhand/backend/proxy"
	"deskhand/backend/remotes"
	"deskhand/backend/requests"
	"deskhand/backend/roster"
	"deskhand/backend/search"
	"deskhand/backend/session"
	"deskhand/backend/startmode"
	"deskhand/backend/store"
	"deskhand/backend/tools"
	"deskhand/backend/transcript"
	"deskhand/backend/workspace"
)

// Records of the client API for commands; package session documents them.
type (
	// Session is the record of a session.
	Session = session.Session
	// Comparison is a prompt that several agents were given.
	Comparison = compare.Comparison
	// ComparisonResults is a comparison with what its members have made of the prompt.
	ComparisonResults = compare.ComparisonResults
	// Member is an agent of a comparison.
	Member = compare.Member
	// MemberResult is what an agent of a comparison has made of the prompt.
	MemberResult = compare.MemberResult
	// NewComparison describes a comparison to create.
	NewComparison = compare.NewComparison
	// NewMember describes an agent of a comparison to create.
	NewMember = compare.NewMember
	// NewSession describes a session to create.
	NewSession = session.New
	// StartMode is the start mode of new sessions of an agent.
	StartMode = startmode.StartMode
	// AgentSession is a conversation in an agent's own list.
	AgentSession = session.AgentSession
	// AgentSessions is a page of an agent's own list.
	AgentSessions = session.AgentSessions
	// Import names the conversations to import.
	Import = session.Import
	// Workspace is a directory that sessions work in.
	Workspace = workspace.KnownWorkspace
	// Turn is a prompt until its stop reason.
	Turn = session.Turn
	// Entry is an item of a transcript.
	Entry = transcript.Entry
	// Append is text added to an entry.
	Append = transcript.Append
	// Exit is the end of an agent's process.
	Exit = transcript.Exit
	// Request is a request that waits for a person.
	Request = requests.Request
	// RequestPart is a part of a permission's content.
	RequestPart = inspect.RequestPart
	// PartPage is a page of a part's text.
	PartPage = inspect.PartPage
	// RequestOption is an option of a permission.
	RequestOption = requests.Option
	// Executable is a part of a directory that starts with an agent.
	Executable = launch.Executable
	// Question is a question of a request.
	Question = requests.Question
	// QuestionOption is an option of a question.
	QuestionOption = form.QuestionOption
	// Place is a place where agents run.
	Place = remotes.Place
	// Found is what a search found.
	Found = search.Found
	// Answer is a person's answer to a request.
	Answer = requests.Answer
	// Event is an entry of the feed.
	Event = feed.Event
	// Batch is a part of the feed.
	Batch = feed.Batch
	// Agent is an agent of the catalogue.
	Agent = agents.Agent
	// Report is the result of an agent's test.
	Report = agents.Report
	// InstallPlan is the plan of an installation.
	InstallPlan = agents.Plan
	// InstallProgress is the progress of an installation.
	InstallProgress = roster.InstallProgress
	// Advice is a step that a person can take about an agent.
	Advice = agents.Advice
	// FeedQuery is a position in the feed and a filter.
	FeedQuery = feed.Query
	// Token is a token of the API that a person has created.
	Token = httpapi.Token
	// NewToken describes a token to create.
	NewToken = httpapi.NewToken
	// MadeToken is a new token with its secret.
	MadeToken = httpapi.MadeToken
	// Call is a line of the audit.
	Call = httpapi.Call
	// DiscordState is the state of the Discord surface.
	DiscordState = discord.State
	// DiscordServers are the servers of the bot.
	DiscordServers = discord.Servers
	// DiscordChecked is the result of a check of the Discord set-up.
	DiscordChecked = discord.Checked
	// DiscordBinding binds a channel to a session or a directory.
	DiscordBinding = discord.Binding
)

// SurfaceHeader is the header that names the surface of a client API call.
const SurfaceHeader = httpapi.SurfaceHeader

// IncompleteHeader is the header of an export that lacks unreadable parts.
const IncompleteHeader = httpapi.IncompleteHeader

// NameFile renames a finished file and never replaces a file: when the name is taken, the error is fs.ErrExist.
func NameFile(file, name string) error { return store.NameFile(file, name) }

// Readable is a name in a form that cannot pass for another name.
func Readable(name string) string { return permission.Readable(name) }

// Reveal is a text for a person's decision, with invisible characters replaced by their code points.
func Reveal(text string) string { return permission.Reveal(text) }

// DemoAgent runs the demo agent until in ends.
func DemoAgent(ctx context.Context, in io.Reader, out io.Writer) error {
	return demoagent.Run(ctx, demoagent.Config{}, in, out)
}

// PrintEnvironment prints this process's environment. A login shell runs it on systems that have no program for that.
func PrintEnvironment(out io.Writer) error { return environ.PrintEnvironment(out) }

// Watchdog ends our agents when our process dies; in is the pipe that reports the death.
func Watchdog(in io.Reader) error { return proxy.Watchdog(in) }

// ApartVariable marks processes that an agent has started and that must not end with the agent.
const ApartVariable = proxy.ApartVariable

// Variables that tell [ToolRelay] its socket and its session.
const (
	ToolTicket = tools.TicketVariable
	ToolSocket = tools.SocketVariable
)

// ToolRelay relays a session's tools between the session's agent, on in and out, and its Deskhand.
func ToolRelay(ctx context.Context, socket, ticket string, in io.Reader, out io.Writer) error {
	return tools.Relay(ctx, socket, ticket, in, out)
}
