package remote

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptrace"
	"net/url"
	"sync"
	"sync/atomic"
	"time"

	"deskhand/backend/acp"
)

// Send sends a message, and returns when the runtime has the message. While the line is broken, Send waits until ctx ends or the instance
// is closed. An error says that the message will not arrive; for a request, the refusal comes as its answer instead.
func (i *Instance) Send(ctx context.Context, msg []byte) error { return i.send(ctx, msg, false) }

// SendAgain is Send for a message that an earlier program may have sent, to an instance that is read on. A request is not sent while its
// answer may be among the messages that the runtime holds. To a runtime that would have the agent do the request twice, the request is
// not sent at all, and Next reports a [DoubtError].
func (i *Instance) SendAgain(ctx context.Context, msg []byte) error { return i.send(ctx, msg, true) }

func (i *Instance) send(ctx context.Context, msg []byte, before bool) error {
	e, err := acp.Peek(msg)
	if err != nil {
		return err
	}
	if i.lost() {
		return ErrGone
	}
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	defer context.AfterFunc(i.ctx, func() { cancel(ErrClosed) })() //nolint:contextcheck // the sending ends with the caller's context and with the instance's
	var c *call
	var answered chan struct{}
	if e.Kind == acp.Request {
		answered = make(chan struct{})
		c = &call{answered: answered, doubtful: before, before: before}
		i.mu.Lock()
		i.calls.waiting[e.Key()] = c
		i.mu.Unlock()
	}
	for pause := firstPause; ; pause = min(2*pause, i.runtime.cfg.Backoff) {
		err := i.tryOnce(ctx, e, c)
		if err != nil && ctx.Err() != nil {
			return context.Cause(ctx)
		}
		i.note(err)
		var problem *ProblemError
		switch {
		case err == nil:
			return nil
		case errors.Is(err, ErrGone):
			return err
		case errors.Is(err, ErrProblem):
			return i.refused(ctx, e, err)
		case errors.As(err, &problem):
			pause = max(pause, problem.after)
		}
		line, person := i.better()
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-answered: // which the next try finds
		case <-line:
		case <-person:
		case <-time.After(pause):
		}
		if c != nil && c.doubtful && !c.isAnswered() && problem == nil {
			i.renew() // the line may be dead without an error, and the answer lost with it; not after an answer of the runtime
		}
	}
}

// lost reports whether the runtime is known to have lost the instance: messages that wait behind a refused message are not tried then.
func (i *Instance) lost() bool {
	i.mu.Lock()
	defer i.mu.Unlock()
	return errors.Is(i.final, ErrGone)
}

// tryOnce tries a message unless its answer has come. A request that may have arrived is tried again only once the line has brought all
// replayed messages. That holds until a try is confirmed, whatever happened to the tries between: the answer may have come to a line that
// was dead by then.
func (i *Instance) tryOnce(ctx context.Context, e acp.Envelope, c *call) error {
	if c.isAnswered() || c != nil && c.doubtful && i.settled(ctx, c) {
		return nil
	}
	err := i.try(ctx, e, c)
	switch {
	case errors.Is(err, errUnknown):
		c.doubtful = true
	case (errors.Is(err, ErrProblem) || errors.Is(err, ErrRefused)) && c != nil && !c.doubtful:
		c.written.Store(false) // the runtime itself says that it has not taken the request
	}
	if err != nil && c.isAnswered() {
		return nil
	}
	return err
}

// MayHave reports whether a request that is being sent, or was given up, may have reached the runtime: the request was written whole at
// least once.
func (i *Instance) MayHave(request acp.Key) bool {
	i.mu.Lock()
	defer i.mu.Unlock()
	return i.calls.mayHave(request)
}

// errUnknown says that the line broke before a request was confirmed.
var errUnknown = errors.New("it is not known whether it arrived")

// note reports that the token of a message was refused, or, with any other err and with nil, that the token is no longer refused.
func (i *Instance) note(err error) {
	i.mu.Lock()
	if i.line.denied = nil; errors.Is(err, ErrRefused) {
		i.line.denied = err
	}
	i.mu.Unlock()
	i.tell()
}

// better returns two channels: line is closed when the broken line may be back, which the line may know sooner than the next try, and
// person is closed by Retry.
func (i *Instance) better() (line, person <-chan struct{}) {
	i.mu.Lock()
	defer i.mu.Unlock()
	if !i.line.up {
		line = i.changed
	}
	return line, i.again
}

// try sends a message once.
func (i *Instance) try(ctx context.Context, e acp.Envelope, c *call) error {
	if !i.runtime.asked.Load() {
		if _, err := i.runtime.Check(ctx); err != nil {
			return err
		}
	}
	if c == nil {
		return i.post(ctx, e)
	}
	switch {
	case i.runtime.careful.Load():
		return i.ask(ctx, e, c)
	case c.before:
		i.mu.Lock()
		defer i.mu.Unlock()
		i.putLocked(item{err: &DoubtError{e.Method()}})
		return nil
	}
	return i.call(ctx, e, c)
}

// query names the agent until the agent has started. After that, a query would start the agent anew, which would then get a message of a
// session that it does not know.
func (i *Instance) query() url.Values {
	i.mu.Lock()
	defer i.mu.Unlock()
	if i.started {
		return nil
	}
	q := url.Values{"agent": {i.start.Agent}}
	if i.start.Cwd != "" {
		q.Set("cwd", i.start.Cwd)
	}
	return q
}

// message makes the POST request for a message.
func (i *Instance) message(ctx context.Context, e acp.Envelope) (*http.Request, error) {
	req, err := i.runtime.request(ctx, http.MethodPost, instancePath(i.id), i.query(), bytes.NewReader(e.Raw))
	if err != nil {
		return nil, err
	}
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("Accept", "application/json")
	return req, nil
}

// deliver sends the POST request. The runtime has taken the message when the answer is 202, or 200 with JSON, as the API says. No message
// starts an agent that is being closed.
func (i *Instance) deliver(req *http.Request) (*http.Response, error) {
	i.posting.RLock()
	defer i.posting.RUnlock()
	i.mu.Lock()
	closed := i.closing && !i.started
	i.mu.Unlock()
	if closed {
		return nil, ErrClosed
	}
	trace := &httptrace.ClientTrace{GotConn: func(httptrace.GotConnInfo) {
		i.mu.Lock()
		defer i.mu.Unlock()
		i.asked = true
	}}
	res, err := i.runtime.do(req.WithContext(httptrace.WithClientTrace(req.Context(), trace)))
	if err == nil && res.StatusCode != http.StatusAccepted && (res.StatusCode != http.StatusOK || !isOf(res, "application/json")) {
		return nil, foreign(res)
	}
	return res, err
}

// arrived notes that the runtime has taken a message and so has the instance.
func (i *Instance) arrived() {
	i.mu.Lock()
	first := !i.started
	i.started = true
	i.mu.Unlock()
	if first {
		i.kickLine()
	}
}

// post sends a message without an answer. The message may arrive twice when the line breaks, which harms none of our messages.
func (i *Instance) post(ctx context.Context, e acp.Envelope) error {
	req, end, err := i.paced(ctx, e, i.patience(len(e.Raw)), func() {})
	defer end()
	if err != nil {
		return err
	}
	res, err := i.deliver(req)
	if err != nil {
		return err
	}
	drop(res)
	i.arrived()
	return nil
}

// ask sends a request to a runtime that confirms requests at once. The answer comes over the stream. When the answer to an earlier try
// comes, ask gives the present try up: the request's id is free again once the agent has answered, and a slow try would be taken for a
// new request.
func (i *Instance) ask(ctx context.Context, e acp.Envelope, c *call) error {
	var watching sync.WaitGroup
	defer watching.Wait()
	ctx, over := context.WithCancel(ctx)
	defer over()
	watching.Go(func() {
		select {
		case <-c.answered:
			over()
		case <-ctx.Done():
		}
	})
	var wrote atomic.Bool
	req, end, err := i.paced(ctx, e, i.patience(len(e.Raw)), func() {
		wrote.Store(true)
		c.written.Store(true)
	})
	defer end()
	if err != nil {
		return err
	}
	req.Header.Set("Prefer", "respond-async")
	res, err := i.deliver(req)
	problem, refused := errors.AsType[*ProblemError](err)
	switch {
	case err == nil:
		defer res.Body.Close()
		i.arrived()
		if res.StatusCode == http.StatusOK { // the runtime has ignored the Prefer header
			i.answer(ctx, e, c, res.Body)
		}
		return nil
	case refused && problem.kind() == "conflict", refused && problem.kind() == "timeout":
		i.arrived() // the request is in flight
		return nil
	case !refused && wrote.Load() && !errors.Is(err, errForeign):
		return fmt.Errorf("%w: %w", errUnknown, err)
	}
	return err
}

// paced makes a request that fails when it makes no progress: no more of the message is sent for a time, or no answer comes within
// patience after the write. The total time depends on the line: 13 MB of pictures take half a minute on an ordinary line. patience is for
// a slow connection; a connection that is likely dead (stale) gets the shorter limit. The caller calls end after reading the answer.
func (i *Instance) paced(ctx context.Context, e acp.Envelope, patience time.Duration, written func()) (req *http.Request, end func(), err error) {
	ctx, cancel := context.WithCancelCause(ctx)
	limit, first := i.runtime.cfg.Answer, i.query() != nil
	watch := time.AfterFunc(limit, func() { cancel(errStalled) })
	wrote := make(chan struct{})
	var once sync.Once
	var waiting sync.WaitGroup
	if !first { // the wait for an installation does not depend on the line
		waiting.Go(func() {
			select {
			case <-wrote:
			case <-ctx.Done():
				return
			}
			if i.stale(ctx) {
				watch.Reset(limit)
			}
		})
	}
	end = func() {
		cancel(nil)
		waiting.Wait()
		watch.Stop()
	}
	trace := &httptrace.ClientTrace{WroteRequest: func(w httptrace.WroteRequestInfo) {
		if w.Err == nil {
			watch.Reset(patience)
			written()
			once.Do(func() { close(wrote) })
		}
	}}
	req, err = i.message(httptrace.WithClientTrace(ctx, trace), e)
	if err != nil {
		return nil, end, err
	}
	fresh := req.GetBody
	req.GetBody = func() (io.ReadCloser, error) { // used by http for a connection that turned out to be broken
		body, err := fresh()
		return io.NopCloser(pulse{body, func() { watch.Reset(limit) }}), err
	}
	req.Body, err = req.GetBody()
	return req, end, err
}

// stale waits until a silent connection is likely dead: the line has been made anew since, or Retry was called. stale returns false when
// ctx ends first.
func (i *Instance) stale(ctx context.Context) bool {
	i.mu.Lock()
	made, person := i.line.made, i.again
	i.mu.Unlock()
	for {
		i.mu.Lock()
		now, changed := i.line.made, i.changed
		i.mu.Unlock()
		if now != made {
			return true
		}
		select {
		case <-person:
			return true
		case <-changed:
		case <-ctx.Done():
			return false
		}
	}
}

// patience is how long a runtime may take to confirm a message: the first message may wait for the agent's installation, and megabytes of
// a written message may still be in the system's buffers. With a shorter limit, a line of 2 Mbit/s would send the message again and
// again.
func (i *Instance) patience(length int) time.Duration {
	if i.query() != nil {
		return 15 * time.Minute
	}
	const slow, buffers = 32 << 10, 8 << 20 // bytes a second; bytes
	return i.runtime.cfg.Answer + time.Duration(min(length, buffers)/slow)*time.Second
}

// settled waits until the line is back and has brought the messages that the runtime held. settled reports whether the answer was among
// them.
func (i *Instance) settled(ctx context.Context, c *call) bool {
	for {
		if c.isAnswered() {
			return true
		}
		i.mu.Lock()
		up, heard, begun, full, changed, enough := i.line.up, i.line.heard, i.started, i.inbox.full, i.changed, quietFor
		if i.line.partly {
			enough = i.runtime.cfg.Answer
		}
		i.mu.Unlock()
		var quiet <-chan time.Time
		switch {
		case !begun:
			return false
		case full: // the answer may wait in the line
		case up && time.Since(heard) >= enough:
			return false
		case up:
			quiet = time.After(min(enough, quietFor)) // partly may change the limit meanwhile
		}
		select {
		case <-c.answered:
			return true
		case <-changed:
		case <-quiet:
		case <-ctx.Done():
			return false
		}
	}
}

// call sends a request to a runtime whose POST returns the answer. call returns when the agent has the request, as far as that can be
// known; a goroutine of its own waits for the answer.
func (i *Instance) call(ctx context.Context, e acp.Envelope, c *call) error {
	wrote := make(chan struct{}, 1)
	trace := &httptrace.ClientTrace{WroteRequest: func(w httptrace.WroteRequestInfo) {
		if w.Err == nil {
			c.written.Store(true)
			select {
			case wrote <- struct{}{}:
			default:
			}
		}
	}}
	req, err := i.message(httptrace.WithClientTrace(i.ctx, trace), e) //nolint:contextcheck // the request outlives the call
	if err != nil {
		return err
	}
	req.Close = true // a kept connection may have been broken for long
	before, first := i.came(), i.query() != nil
	done := make(chan error, 1)
	i.wg.Go(func() { done <- i.await(req, e, c) })
	select {
	case err := <-done:
		return err
	case <-c.answered:
		return nil
	case <-wrote:
	case <-ctx.Done():
		return context.Cause(ctx)
	}
	var enough <-chan time.Time
	if !first {
		enough = time.After(i.runtime.cfg.Unconfirmed)
	}
	select {
	case err = <-done:
	case <-c.answered:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	case <-enough:
		i.wg.Go(func() { i.doubt(done, e, c, before) })
		return nil
	}
	if _, refused := errors.AsType[*ProblemError](err); err != nil && !refused && !errors.Is(err, errForeign) && !first {
		i.doubted(e, c, before)
		return nil
	}
	return err
}

// await waits for the answer in a POST.
func (i *Instance) await(req *http.Request, e acp.Envelope, c *call) error {
	res, err := i.deliver(req)
	problem, refused := errors.AsType[*ProblemError](err)
	switch {
	case err == nil:
		defer res.Body.Close()
		i.arrived()
		if res.StatusCode == http.StatusOK {
			i.answer(i.ctx, e, c, res.Body)
		}
		return nil
	case refused && (problem.kind() == "timeout" || problem.Status == http.StatusGatewayTimeout):
		i.arrived() // the runtime stops waiting; the agent works on
		return nil
	}
	return err
}

// doubt waits for the result of a request that counted as delivered.
func (i *Instance) doubt(done <-chan error, e acp.Envelope, c *call, before uint64) {
	err := <-done
	switch {
	case err == nil || i.ctx.Err() != nil:
	case errors.Is(err, ErrProblem):
		_ = i.refused(i.ctx, e, err)
	default:
		i.doubted(e, c, before)
	}
}

// doubted reports that a request may not have arrived, unless a message that came since shows that the request did.
func (i *Instance) doubted(e acp.Envelope, c *call, before uint64) {
	i.renew()
	if i.settled(i.ctx, c) || i.came() != before || i.ctx.Err() != nil {
		return
	}
	i.mu.Lock()
	defer i.mu.Unlock()
	i.putLocked(item{err: &DoubtError{e.Method()}})
}

// answer takes the answer that a POST has brought. answer first waits for the stream's copy, which is better because it follows all
// earlier messages.
func (i *Instance) answer(ctx context.Context, e acp.Envelope, c *call, body io.Reader) {
	data, err := io.ReadAll(io.LimitReader(body, maxMessage+1))
	if err != nil || len(data) > maxMessage {
		return // the answer comes over the stream, or as a gap there
	}
	got, err := acp.Peek(data)
	if err != nil || got.Kind != acp.Response || got.Key() != e.Key() {
		return
	}
	select {
	case <-c.answered:
		return
	case <-time.After(overtakes):
	case <-ctx.Done():
		return
	}
	i.mu.Lock()
	defer i.mu.Unlock()
	i.byPostLocked(e, c, got.Raw)
}

// byPostLocked queues an answer that did not come over the stream.
func (i *Instance) byPostLocked(e acp.Envelope, c *call, data []byte) {
	if i.calls.waiting[e.Key()] != c || c.byPost {
		return
	}
	c.byPost = true
	close(c.answered)
	i.putLocked(item{Message: Message{i.inbox.last, acp.Compact(nil, data)}})
}

// refused ends a message that the runtime will not take. The instance may be gone, too.
func (i *Instance) refused(ctx context.Context, e acp.Envelope, err error) error {
	problem, _ := errors.AsType[*ProblemError](err)
	if i.query() == nil {
		known, lost := i.runtime.knows(ctx, i.id)
		switch {
		case lost == nil && !known:
			i.finish(ErrGone)
			return ErrGone
		case lost == nil && problem.closedInput():
			return fmt.Errorf("%w: %w", ErrInput, err)
		}
	}
	if e.Kind != acp.Request {
		return err
	}
	data, _ := json.Marshal(problem)
	answer, failed := acp.NewErrorResponse(e.ID, &acp.Error{Code: acp.CodeInternalError, Message: problem.Error(), Data: data})
	if failed != nil {
		return failed
	}
	i.mu.Lock()
	defer i.mu.Unlock()
	if c := i.calls.waiting[e.Key()]; c != nil {
		i.byPostLocked(e, c, answer)
		delete(i.calls.waiting, e.Key())
	}
	return nil
}
