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

// Names of the tools, as they are listed.
const (
	toolAdd      = "attachment_add"
	toolDownload = "attachment_download"
	toolAsk      = "ask_user"

	toolAskGemini = "ask_person"
)

// caller serves the calls of one grant.
type caller struct {
	*Server

	grant *grant
}

func (c *caller) addTools() {
	yes, no := true, false
	// The hints keep agents from asking a person whether they may show, or ask, that person something.
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

// add adds a tool whose input is an In and whose result is what f gives. Input that is no In is a failure of the call.
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
			defer context.AfterFunc(l.ctx, cancel)() //nolint:contextcheck // the end of either ends it
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

// result is a value as agents read it: as structure and as text, since most look at one of them only.
func result(value any, isError bool) *sdk.CallToolResult {
	text, err := json.Marshal(value)
	if err != nil { // of our own types: it is not so
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

	Done []attachment.Downloaded `json:"done,omitempty"` // what was saved all the same
}

// ruleError is a failure with a rule of ours.
type ruleError struct{ rule, text string }

func (e *ruleError) Error() string { return e.text }

func failed(err error) *sdk.CallToolResult { return result(told(err), true) }

// told is an error to an agent: the rule, the file, and words. It has nothing of our own places in it.
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

// words are a refusal with what it says of the case.
func words(r *session.RefusedError) string {
	said := []string{r.Error()}
	for _, name := range slices.Sorted(maps.Keys(r.Params)) {
		if name != "detail" {
			said = append(said, name+" "+r.Params[name])
		}
	}
	return strings.Join(said, ", ")
}

// live tells the client again and again that a call still runs, until stopped.
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
				_ = r.Session.NotifyProgress(ctx, &sdk.ProgressNotificationParams{ProgressToken: token, Progress: float64(n), Message: "waiting"}) // who has gone ends ctx
			case l != nil:
				l.live()
			}
		}
	}()
	return func() { close(over); <-ended }
}

// moving waits until no other call of the session moves files, and gives the client.
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
