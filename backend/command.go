package backend

import (
	"context"
	"io"

	"deskhand/backend/demoagent"
	"deskhand/backend/httpapi"
	"deskhand/backend/proxy"
	"deskhand/backend/session"
)

// The records of the client API, for a command that reads it; package session tells what they hold.
type (
	// Session is the record of one conversation, and so on.
	Session        = session.Session
	NewSession     = session.New
	Turn           = session.Turn
	Entry          = session.Entry
	Append         = session.Append
	Exit           = session.Exit
	Request        = session.Request
	RequestOption  = session.RequestOption
	Question       = session.Question
	QuestionOption = session.QuestionOption
	Answer         = session.Answer
	Event          = session.Event
	Batch          = session.Batch
	FeedQuery      = session.Query
)

// SurfaceHeader is the header by which a caller of the client API says what it is.
const SurfaceHeader = httpapi.SurfaceHeader

// DemoAgent runs the built-in agent on stdio until its input ends.
func DemoAgent(ctx context.Context, in io.Reader, out io.Writer) error {
	return demoagent.Run(ctx, in, out)
}

// Watchdog is the process that ends our agents when we are killed; in is the pipe that tells it so.
func Watchdog(in io.Reader) error { return proxy.Watchdog(in) }
