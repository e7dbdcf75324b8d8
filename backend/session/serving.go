package session

import (
	"context"
	"encoding/json"
	"strings"

	"deskhand/backend/acp"
	"deskhand/backend/journal"
)

// What an agent asks of us rather than of a person: files and programs. It is done beside the conversation's goroutine, and answered in
// it. Only a session whose host has Files serves these requests: an agent elsewhere means files there.

const mostServed = 256 // requests of one agent at a time

// outcome is what comes of a request: a result or a failure for the agent. Of a long result the journal has journaled in its place, and
// told is called before the answer goes out, in the conversation's goroutine.
type outcome struct {
	result    any
	failure   *acp.Error
	journaled any
	told      func()
}

// chore is the work behind a request. It ends with ctx, soon: the end of the agent is waited for.
type chore func(ctx context.Context) outcome

func failed(code int, message string) outcome {
	return outcome{failure: &acp.Error{Code: code, Message: message}}
}

func withdrawnOutcome() outcome { return failed(acp.CodeRequestCancelled, "the request was cancelled") }

// serves tells whether a method is one of these, and has what it needs here.
func (b *inbox) serves(method string) bool {
	switch {
	case b.v.host().Files == nil:
		return false
	case strings.HasPrefix(method, "fs/"):
		return method == "fs/read_text_file" || method == "fs/write_text_file"
	}
	switch method {
	case "terminal/create", "terminal/output", "terminal/wait_for_exit", "terminal/kill", "terminal/release":
		return true
	}
	return false
}

// serve does what the agent asks for and answers.
func (b *inbox) serve(r *openRequest, params json.RawMessage) {
	a := b.v.agent
	if a.serving[r.key] != nil {
		b.refuse(r, acp.CodeInvalidRequest, "a request with this id is open already")
		return
	}
	if len(a.serving) >= mostServed || strings.HasPrefix(r.method, "fs/") && b.v.filing.Load() >= mostServed { // which outlives its agent
		b.refuse(r, acp.CodeInternalError, "too many requests are open")
		return
	}
	work, failure := a.chore(r.method, params)
	if failure != nil {
		b.refuse(r, failure.Code, failure.Message)
		return
	}
	ctx, cancel := context.WithCancel(a.ctx)
	a.serving[r.key] = cancel
	a.work.Go(func() {
		defer cancel()
		out := work(ctx)
		a.post(func() {
			delete(a.serving, r.key)
			b.served(r, out)
		})
	})
}

func (b *inbox) served(r *openRequest, out outcome) {
	if out.told != nil {
		out.told()
	}
	if out.failure != nil {
		b.v.out(acp.NewErrorResponse(r.id, out.failure))
		return
	}
	if out.journaled == nil {
		b.v.out(acp.NewResponse(r.id, out.result))
		return
	}
	short, err := acp.NewResponse(r.id, out.journaled)
	if err != nil {
		b.v.out(nil, err)
		return
	}
	msg, err := acp.NewResponse(r.id, out.result)
	if err != nil {
		b.v.out(nil, err)
		return
	}
	b.v.frame(journal.Out, short)
	b.v.step.send = append(b.v.step.send, msg)
}

// chore reads the params of a request; what is wrong with them is told at once.
func (a *agentProcess) chore(method string, params json.RawMessage) (chore, *acp.Error) {
	switch method {
	case "fs/read_text_file":
		return a.readFile(params)
	case "fs/write_text_file":
		return a.writeFile(params)
	case "terminal/create":
		return a.createTerminal(params)
	}
	p, failure := a.terminal(params)
	if failure != nil {
		return nil, failure
	}
	switch method {
	case "terminal/output":
		return p.output, nil
	case "terminal/wait_for_exit":
		return p.waitForExit, nil
	case "terminal/kill":
		return p.kill, nil
	}
	delete(a.programs, p.id) // its id is dead from now on
	return p.kill, nil
}

// withdraw is the agent's $/cancel_request of what we serve; false = that is no such request.
func (a *agentProcess) withdraw(key acp.Key) bool {
	cancel := a.serving[key]
	if cancel == nil {
		cancel = a.serving[key.Twin()]
	}
	if cancel != nil {
		cancel()
	}
	return cancel != nil
}

func wrong(message string) *acp.Error {
	return &acp.Error{Code: acp.CodeInvalidParams, Message: message}
}
