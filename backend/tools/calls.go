package tools

import (
	"context"
	"encoding/json"
	"errors"
	"maps"
	"reflect"
	"slices"
	"strings"
	"time"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"deskhand/backend/attachment"
	"deskhand/backend/session"
)

// The names of the tools, as listed.
const (
	toolAdd      = "attachment_add"
	toolDownload = "attachment_download"
	toolAsk      = "ask_user"

	toolAskGemini = "ask_person"
)

// caller serves the calls of a grant.
type caller struct {
	*Server

	grant *grant
}

func (c *caller) addTools() {
	yes, no := true, false
	// With these hints, agents do not ask a person for permission to show something to that person, or to ask that person.
	harmless := &sdk.ToolAnnotations{ReadOnlyHint: true, OpenWorldHint: &no}
	add(c, &sdk.Tool{
		Name: toolAdd, Title: "Show files to the person", Annotations: harmless, InputSchema: json.RawMessage(addSchema),
		Description: "Shows files to the person in the conversation: pictures, audio and video inline, others by name. Use it for whatever you made that " +
			"the person should see or keep. The files must be inside the directories of this session; how large they may be, a refusal tells.",
	}, c.addFiles)
	add(c, &sdk.Tool{
		Name: toolDownload, Title: "Save the person's attachments", InputSchema: json.RawMessage(downloadSchema),
		Annotations: &sdk.ToolAnnotations{DestructiveHint: &no, IdempotentHint: true, OpenWorldHint: &yes},
		Description: "Saves all files that came with the person's newest message that has any, and tells where they are. It needs no argument, and writes only what is not there yet.",
	}, c.download)
	add(c, &sdk.Tool{
		Name: toolAsk, Title: "Ask the person", Annotations: harmless, InputSchema: json.RawMessage(askSchema),
		Description: "Asks the person a question, or several at once, and waits for the answer, which may take long. " +
			"answers has one list for each question: the options that were chosen, or the person's own words.",
	}, c.ask)
}

// add adds a tool whose input is an In and whose result is the value of f. Input that does not decode into an In fails the call.
func add[In any](c *caller, t *sdk.Tool, f func(context.Context, *sdk.CallToolRequest, In) (any, error)) {
	c.grant.server.AddTool(t, func(ctx context.Context, r *sdk.CallToolRequest) (*sdk.CallToolResult, error) {
		leave, err := c.grant.enter()
		if err != nil {
			return failed(err), nil
		}
		defer leave()
		ctx, cancel := c.grant.within(ctx)
		defer cancel()
		if l := lineOf(r); l != nil {
			defer context.AfterFunc(l.ctx, cancel)() //nolint:contextcheck // the call ends with either context
		}
		defer c.live(ctx, r)()
		var in In
		if raw := r.Params.Arguments; len(raw) > 0 && string(raw) != "null" {
			if err := json.Unmarshal(raw, &in); err != nil {
				return failed(wrongArguments(err, reflect.TypeFor[In]())), nil
			}
		}
		out, err := f(ctx, r, in)
		if err != nil {
			return failed(err), nil
		}
		return result(out, false), nil
	})
}

// result returns a value both as structure and as text, since most agents read only one of the two.
func result(value any, isError bool) *sdk.CallToolResult {
	text, err := json.Marshal(value)
	if err != nil { // never for the types of this package
		text, isError = []byte(`{"ok":false}`), true
	}
	return &sdk.CallToolResult{Content: []sdk.Content{&sdk.TextContent{Text: string(text)}}, StructuredContent: json.RawMessage(text), IsError: isError}
}

// failure is the result of a call that failed.
type failure struct {
	OK      bool   `json:"ok"`
	Rule    string `json:"rule"`
	File    string `json:"file,omitempty"`
	Message string `json:"message"`

	Done []attachment.Downloaded `json:"done,omitempty"` // the files that were saved before the failure
}

// ruleError is a failure with a rule of this package.
type ruleError struct{ rule, text string }

func (e *ruleError) Error() string { return e.text }

func failed(err error) *sdk.CallToolResult { return result(told(err), true) }

// told returns an error for an agent: the rule, the file, and a text. It names no directory of Deskhand's own.
func told(err error) failure {
	var some *partlyError
	var problem *attachment.Problem
	var rule *ruleError
	var refused *session.RefusedError
	switch {
	case errors.As(err, &some):
		f := told(some.error)
		f.Done = some.done
		return f
	case errors.As(err, &problem):
		return failure{Rule: problem.Code, File: problem.Params["name"], Message: problem.Error()}
	case errors.As(err, &rule):
		return failure{Rule: rule.rule, Message: rule.text}
	case errors.As(err, &refused):
		return failure{Rule: refused.Code, File: refused.Params["name"], Message: words(refused)}
	case errors.Is(err, errEnded), errors.Is(err, session.ErrNotFound), errors.Is(err, session.ErrClosed):
		return failure{Rule: "ended", Message: errEnded.Error()}
	case errors.Is(err, context.Canceled):
		return failure{Rule: "cancelled", Message: "the call was cancelled"}
	case errors.Is(err, session.ErrStorage):
		return failure{Rule: "storage", Message: session.ErrStorage.Error()}
	}
	return failure{Rule: "internal", Message: err.Error()}
}

// words returns the text of a refusal with its parameters.
func words(r *session.RefusedError) string {
	said := []string{r.Error()}
	for _, name := range slices.Sorted(maps.Keys(r.Params)) {
		if name != "detail" {
			said = append(said, name+" "+r.Params[name])
		}
	}
	return strings.Join(said, ", ")
}

// live signals to the client at intervals that a call still runs, until stop is called.
func (c *caller) live(ctx context.Context, r *sdk.CallToolRequest) (stop func()) {
	over, ended := make(chan struct{}), make(chan struct{})
	token, l := r.Params.GetProgressToken(), lineOf(r)
	go func() {
		defer close(ended)
		again := time.NewTicker(c.cfg.Progress)
		defer again.Stop()
		for n := 1; ; n++ {
			select {
			case <-again.C:
			case <-ctx.Done():
				return
			case <-over:
				return
			}
			switch {
			case token != nil:
				_ = r.Session.NotifyProgress(ctx, &sdk.ProgressNotificationParams{ProgressToken: token, Progress: float64(n), Message: "waiting"}) // a client that has gone ends ctx
			case l != nil:
				l.live()
			}
		}
	}()
	return func() { close(over); <-ended }
}

// moving waits until no other call of the session moves files, and returns the client. The caller calls done after moving its files.
func (c *caller) moving(ctx context.Context) (client *session.Client, done func(), err error) {
	if client, err = c.using(ctx); err != nil {
		return nil, nil, err
	}
	select {
	case c.grant.moving <- struct{}{}:
		return client, func() { <-c.grant.moving }, nil
	case <-ctx.Done():
		return nil, nil, ctx.Err()
	}
}
