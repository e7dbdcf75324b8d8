package backend

import (
	"context"
	"io"

	"deskhand/backend/agents"
	"deskhand/backend/demoagent"
	"deskhand/backend/discord"
	"deskhand/backend/httpapi"
	"deskhand/backend/permission"
	"deskhand/backend/proxy"
	"deskhand/backend/remotes"
	"deskhand/backend/session"
	"deskhand/backend/store"
	"deskhand/backend/tools"
	"deskhand/backend/transcript"
)

// The records of the client API, for a command that reads it; package session tells what they hold.
type (
	// Session is the record of one conversation.
	Session = session.Session
	// NewSession is what a session is made from.
	NewSession = session.New
	// StartMode is what new conversations with an agent begin with.
	StartMode = session.StartMode
	// AgentSession is a conversation that an agent has.
	AgentSession = session.AgentSession
	// AgentSessions is a page of them.
	AgentSessions = session.AgentSessions
	// Import says which of them to take in.
	Import = session.Import
	// Workspace is a directory that sessions work in.
	Workspace = session.KnownWorkspace
	// Turn is one prompt until its stop.
	Turn = session.Turn
	// Entry is one item of a transcript.
	Entry = transcript.Entry
	// Append is text that was added to an entry.
	Append = transcript.Append
	// Exit tells how an agent ended.
	Exit = transcript.Exit
	// Request is something that waits for a person.
	Request = session.Request
	// RequestPart is one thing that a permission is about.
	RequestPart = session.RequestPart
	// PartPage is a page of the text of one.
	PartPage = session.PartPage
	// RequestOption is one button of a permission.
	RequestOption = session.RequestOption
	// Executable is something in a directory that starts with an agent.
	Executable = session.Executable
	// Question is one question of a request.
	Question = session.Question
	// QuestionOption is one choice of a question.
	QuestionOption = session.QuestionOption
	// Place is where agents can run.
	Place = remotes.Place
	// Found is what a search found.
	Found = session.Found
	// Answer is what a person answers.
	Answer = session.Answer
	// Event is one entry of the feed.
	Event = session.Event
	// Batch is a part of the feed.
	Batch = session.Batch
	// Agent is one agent as people see it.
	Agent = agents.Agent
	// Report is what a start of an agent showed.
	Report = agents.Report
	// InstallPlan is what an installation would do.
	InstallPlan = agents.Plan
	// InstallProgress is how far an installation is.
	InstallProgress = session.InstallProgress
	// Advice is something to do about an agent.
	Advice = agents.Advice
	// FeedQuery is what a reader asks of the feed.
	FeedQuery = session.Query
	// Token is a key to the API that a person has made.
	Token = httpapi.Token
	// NewToken is what one is made from.
	NewToken = httpapi.NewToken
	// MadeToken is one with what it is.
	MadeToken = httpapi.MadeToken
	// Call is a line of the audit.
	Call = httpapi.Call
	// DiscordState is the surface of Discord.
	DiscordState = discord.State
	// DiscordServers are the servers that its bot is in.
	DiscordServers = discord.Servers
	// DiscordChecked is what was looked at of it.
	DiscordChecked = discord.Checked
	// DiscordBinding says what a channel is for.
	DiscordBinding = discord.Binding
)

// SurfaceHeader is the header by which a caller of the client API says what it is.
const SurfaceHeader = httpapi.SurfaceHeader

// IncompleteHeader is the header of an export that lacks what could not be read.
const IncompleteHeader = httpapi.IncompleteHeader

// NameFile gives a finished file its name, and replaces nothing: where something has that name, the error is fs.ErrExist.
func NameFile(file, name string) error { return store.NameFile(file, name) }

// Readable is a name that cannot pass for another one in a text.
func Readable(name string) string { return session.Readable(name) }

// Reveal is a text that somebody decides about, with the characters that nobody sees written by their numbers.
func Reveal(text string) string { return permission.Reveal(text) }

// DemoAgent runs the built-in agent on stdio until its input ends.
func DemoAgent(ctx context.Context, in io.Reader, out io.Writer) error {
	return demoagent.Run(ctx, in, out)
}

type (
	// Replay is what a replay of a recording is made of.
	Replay = demoagent.ReplayConfig
	// ReplayFault is something that goes wrong in it.
	ReplayFault = demoagent.Fault
	// ReplayExitError is its end by an exit code.
	ReplayExitError = demoagent.ExitError
)

// ReplayFaults are the faults as people write them, and what each does.
func ReplayFaults() [][2]string { return demoagent.FaultForms() }

// ReplayAgent plays the agent's part of a recorded conversation on stdio.
func ReplayAgent(ctx context.Context, cfg Replay, in io.Reader, out, stderr io.Writer) error {
	return demoagent.Replay(ctx, cfg, in, out, stderr)
}

// PrintEnvironment is what a login shell runs when it is asked for its environment where the system has nothing for it.
func PrintEnvironment(out io.Writer) error { return agents.PrintEnvironment(out) }

// Watchdog is the process that ends our agents when we are killed; in is the pipe that tells it so.
func Watchdog(in io.Reader) error { return proxy.Watchdog(in) }

// ApartVariable is in the environment of what an agent has started and does not end with it.
const ApartVariable = proxy.ApartVariable

// Variables by which [ToolRelay] is told whose tools it carries.
const (
	ToolTicket = tools.TicketVariable
	ToolSocket = tools.SocketVariable
)

// ToolRelay carries the tools of a session between its agent, on in and out, and the Deskhand that has it.
func ToolRelay(ctx context.Context, socket, ticket string, in io.Reader, out io.Writer) error {
	return tools.Relay(ctx, socket, ticket, in, out)
}
