package session

import (
	"context"
	"encoding/json"
	"strings"

	"deskhand/backend/acp"
	"deskhand/backend/journal"
	"deskhand/backend/requests"
)

// Requests of an agent that Deskhand serves without a person: files and programs. The work runs in goroutines of its own, and the answer is
// sent in the conversation's goroutine. Only a session whose host has Files serves these requests: a remote agent means files on its own
// machine.

const mostServed = 256 // requests of one agent that are served at a time

// outcome is the result of a served request: a result or a failure for the agent. journaled stands in the journal for a long result. told
// is called before the answer is sent, in the conversation's goroutine.
type outcome struct {
	result    any
	failure   *acp.Error
	journaled any
	told      func()
}

// chore is the work of a served request, in a goroutine of its own. chore ends soon after ctx, since the end of the agent waits for it.
type chore func(ctx context.Context) outcome

func failed(code int, message string) outcome {
	return outcome{failure: &acp.Error{Code: code, Message: message}}
}

func withdrawnOutcome() outcome { return failed(acp.CodeRequestCancelled, "the request was cancelled") }

// serves reports whether Deskhand serves a method for this session.
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

// serve starts the work of a request, and answers when the work has ended.
func (b *inbox) serve(r *requests.Pending, params json.RawMessage) {
	a := b.v.agent
	if a.serving[r.Key] != nil {
		b.refuse(r, acp.CodeInvalidRequest, "a request with this id is open already")
		return
	}
	if len(a.serving) >= mostServed || strings.HasPrefix(r.Method, "fs/") && b.v.filing.Load() >= mostServed { // file work may outlive its agent process
		b.refuse(r, acp.CodeInternalError, "too many requests are open")
		return
	}
	work, failure := a.chore(r.Method, params)
	if failure != nil {
		b.refuse(r, failure.Code, failure.Message)
		return
	}
	ctx, cancel := context.WithCancel(a.ctx)
	a.serving[r.Key] = cancel
	a.work.Go(func() {
		defer cancel()
		out := work(ctx)
		a.post(func() {
			delete(a.serving, r.Key)
			b.served(r, out)
		})
	})
}

// served answers a request whose work has ended.
func (b *inbox) served(r *requests.Pending, out outcome) {
	if out.told != nil {
		out.told()
	}
	if out.failure != nil {
		b.v.out(acp.NewErrorResponse(r.AgentID, out.failure))
		return
	}
	if out.journaled == nil {
		b.v.out(acp.NewResponse(r.AgentID, out.result))
		return
	}
	short, err := acp.NewResponse(r.AgentID, out.journaled)
	if err != nil {
		b.v.out(nil, err)
		return
	}
	msg, err := acp.NewResponse(r.AgentID, out.result)
	if err != nil {
		b.v.out(nil, err)
		return
	}
	b.v.frame(journal.Out, short)
	b.v.step.send = append(b.v.step.send, msg)
}

// chore reads the params of a request, in the conversation's goroutine, and returns the work; wrong params are a failure at once.
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
		return p.newest, nil
	case "terminal/wait_for_exit":
		return p.waitForExit, nil
	case "terminal/kill":
		return p.kill, nil
	}
	delete(a.programs, p.id) // the id is invalid from now on
	return p.kill, nil
}

// withdraw cancels a served request for the agent's $/cancel_request. withdraw returns false when no such request is served.
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
