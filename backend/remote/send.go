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

// Send sends a message, and returns when the runtime has it: while the line is broken it waits, until ctx ends or the instance is let go. An
// error tells that the message will not arrive; of a request that comes as its answer instead.
func (i *Instance) Send(ctx context.Context, msg []byte) error { return i.send(ctx, msg, false) }

// SendAgain is Send of a message that may have been sent before, to an instance that is read on. A request is not sent while its answer may be
// among what the runtime holds; and of a runtime that would have the agent do it twice it is not sent at all, which is told as a [DoubtError].
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
	defer context.AfterFunc(i.ctx, func() { cancel(ErrClosed) })() //nolint:contextcheck // what is sent ends with the caller's context and with the instance's
	var c *call
	var answered chan struct{}
	if e.Kind == acp.Request {
		answered = make(chan struct{})
		c = &call{answered: answered, doubtful: before, before: before}
		i.mu.Lock()
		i.calls[e.Key()] = c
		i.mu.Unlock()
	}
	for pause := firstPause; ; pause = min(2*pause, i.runtime.cfg.Backoff) {
		err := i.tryOnce(ctx, e, c)
		var problem *ProblemError
		switch {
		case err == nil:
			return nil
		case ctx.Err() != nil:
			return context.Cause(ctx)
		case errors.Is(err, ErrGone):
			return err
		case errors.Is(err, ErrProblem):
			return i.refused(ctx, e, err)
		case errors.As(err, &problem):
			pause = max(pause, problem.after)
		}
		i.note(err)
		line, person := i.better()
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-answered:
			return nil
		case <-line:
		case <-person:
		case <-time.After(pause):
		}
		if c != nil && c.doubtful && !c.isAnswered() && problem == nil {
			i.renew() // it may be dead and not know it, and the answer with it; not where something has answered
		}
	}
}

// lost tells that the runtime is known not to have the instance: what waits behind what it has refused is not tried.
func (i *Instance) lost() bool {
	i.mu.Lock()
	defer i.mu.Unlock()
	return errors.Is(i.final, ErrGone)
}

// tryOnce tries a message unless its answer has come. A request that may have arrived is not tried before that is known; this holds until a
// try is confirmed, whatever became of those in between: the answer may have come to a line that was dead by then.
func (i *Instance) tryOnce(ctx context.Context, e acp.Envelope, c *call) error {
	if c.isAnswered() || c != nil && c.doubtful && i.settled(ctx, c) {
		return nil
	}
	err := i.try(ctx, e, c)
	switch {
	case errors.Is(err, errUnknown):
		c.doubtful = true
	case (errors.Is(err, ErrProblem) || errors.Is(err, ErrRefused)) && c != nil && !c.doubtful:
		c.written.Store(false) // the runtime says itself that it has not taken it
	}
	if err != nil && c.isAnswered() {
		return nil
	}
	return err
}

// MayHave tells whether a request that is being sent, or was given up, may have reached the runtime: it was written whole once.
func (i *Instance) MayHave(request acp.Key) bool {
	i.mu.Lock()
	defer i.mu.Unlock()
	c := i.calls[request]
	return request == i.answered || c != nil && (c.before || c.written.Load())
}

// isAnswered tells whether the answer has come; nil is what has none.
func (c *call) isAnswered() bool {
	if c == nil {
		return false
	}
	select {
	case <-c.answered:
		return true
	default:
		return false
	}
}

// errUnknown is what becomes of a request whose line breaks before it is confirmed.
var errUnknown = errors.New("it is not known whether it arrived")

// note tells of a token that what was sent had refused, or no longer has.
func (i *Instance) note(err error) {
	i.mu.Lock()
	if i.denied = nil; errors.Is(err, ErrRefused) {
		i.denied = err
	}
	i.mu.Unlock()
	i.tell()
}

// better is closed when a line that was broken may be there again, which it may know sooner than our own next try, and when a person wants
// it tried.
func (i *Instance) better() (line, person <-chan struct{}) {
	i.mu.Lock()
	defer i.mu.Unlock()
	if !i.up {
		line = i.changed
	}
	return line, i.again
}

// try sends once.
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

// query names the agent, until it has been started. After that it would be started anew, and be asked what it knows nothing of.
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

// message makes the POST of a message.
func (i *Instance) message(ctx context.Context, e acp.Envelope) (*http.Request, error) {
	req, err := i.runtime.request(ctx, http.MethodPost, instancePath(i.id), i.query(), bytes.NewReader(e.Raw))
	if err != nil {
		return nil, err
	}
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("Accept", "application/json")
	return req, nil
}

// deliver makes that POST, which the runtime has taken when it says so as the API has it: 202, or 200 with JSON. Nothing starts an agent
// that is let go.
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

// arrived notes that the runtime has taken a message, and so has the instance.
func (i *Instance) arrived() {
	i.mu.Lock()
	first, denied := !i.started, i.denied
	i.started, i.denied = true, nil
	i.mu.Unlock()
	if first {
		i.kickLine()
	}
	if denied != nil {
		i.tell()
	}
}

// post sends what has no answer. It may arrive twice when the line breaks; nothing that we send minds.
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

// ask sends a request to a runtime that confirms it at once. Its answer comes over the stream; where that is the answer to a try before, this
// one is given up: its id is free again as soon as the agent has answered, and a message that takes long to be sent would be taken anew.
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
		if res.StatusCode == http.StatusOK { // it has not heeded our wish
			i.answer(ctx, e, c, res.Body)
		}
		return nil
	case refused && problem.kind() == "conflict", refused && problem.kind() == "timeout":
		i.arrived() // it is in flight
		return nil
	case !refused && wrote.Load() && !errors.Is(err, errForeign):
		return fmt.Errorf("%w: %w", errUnknown, err)
	}
	return err
}

// paced is a message that is given up when nothing goes on: no more of it is sent for a time, or, once it is written, no answer comes
// within patience. How long it takes in all is the line's affair: 13 MB of pictures take an ordinary one half a minute. The patience is for a
// connection that is slow, not for one that is likely dead (stale). end is for when its answer was read.
func (i *Instance) paced(ctx context.Context, e acp.Envelope, patience time.Duration, written func()) (req *http.Request, end func(), err error) {
	ctx, cancel := context.WithCancelCause(ctx)
	limit, first := i.runtime.cfg.Answer, i.query() != nil
	watch := time.AfterFunc(limit, func() { cancel(errStalled) })
	wrote := make(chan struct{})
	var once sync.Once
	var waiting sync.WaitGroup
	if !first { // what that waits for no line knows
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
	req.GetBody = func() (io.ReadCloser, error) { // for a connection that turned out to be broken
		body, err := fresh()
		return io.NopCloser(pulse{body, func() { watch.Reset(limit) }}), err
	}
	req.Body, err = req.GetBody()
	return req, end, err
}

// stale waits until a connection over which nothing comes is likely dead: the line has been made anew since, or a person wants it tried. It is
// false when ctx ends before.
func (i *Instance) stale(ctx context.Context) bool {
	i.mu.Lock()
	made, person := i.made, i.again
	i.mu.Unlock()
	for {
		i.mu.Lock()
		now, changed := i.made, i.changed
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

// patience is how long a runtime may take to confirm a message: the first may have to wait for the agent to be installed, and of one that counts
// as written megabytes may be in the system's buffers yet. Given up by a shorter limit it is sent again, and again, over a line of 2 Mbit/s.
func (i *Instance) patience(length int) time.Duration {
	if i.query() != nil {
		return 15 * time.Minute
	}
	const slow, buffers = 32 << 10, 8 << 20 // bytes a second; bytes
	return i.runtime.cfg.Answer + time.Duration(min(length, buffers)/slow)*time.Second
}

// settled waits for the line to be there again, and for what the runtime held to have come over it. It tells whether the answer was
// among that.
func (i *Instance) settled(ctx context.Context, c *call) bool {
	for {
		if c.isAnswered() {
			return true
		}
		i.mu.Lock()
		up, heard, begun, full, changed, enough := i.up, i.heard, i.started, i.full, i.changed, quietFor
		if i.partly {
			enough = i.runtime.cfg.Answer
		}
		i.mu.Unlock()
		var quiet <-chan time.Time
		switch {
		case !begun:
			return false
		case full: // it may be among what waits in the line
		case up && time.Since(heard) >= enough:
			return false
		case up:
			quiet = time.After(min(enough, quietFor)) // how much is enough may change with what comes
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

// call sends a request to a runtime that answers with the answer. It returns when the agent has the request, as far as that can be known;
// who waits for the answer is a goroutine of its own.
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
	req, err := i.message(httptrace.WithClientTrace(i.ctx, trace), e) //nolint:contextcheck // it outlives the call
	if err != nil {
		return err
	}
	req.Close = true // on a connection that was kept the line may have been broken for long
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
		i.arrived() // it waits no more; the agent works on
		return nil
	}
	return err
}

// doubt looks at what becomes of a request that counted as delivered.
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

// doubted tells that a request may not have arrived, when nothing of what came since shows that it did.
func (i *Instance) doubted(e acp.Envelope, c *call, before uint64) {
	i.renew()
	if i.settled(i.ctx, c) || i.came() != before || i.ctx.Err() != nil {
		return
	}
	i.mu.Lock()
	defer i.mu.Unlock()
	i.putLocked(item{err: &DoubtError{e.Method()}})
}

// answer takes the answer that a POST has brought. The stream's copy is better, since it stands behind what was said before it.
func (i *Instance) answer(ctx context.Context, e acp.Envelope, c *call, body io.Reader) {
	data, err := io.ReadAll(io.LimitReader(body, maxMessage+1))
	if err != nil || len(data) > maxMessage {
		return // it comes over the stream, or as a gap there
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

// byPostLocked hands over an answer that did not come over the stream.
func (i *Instance) byPostLocked(e acp.Envelope, c *call, data []byte) {
	if i.calls[e.Key()] != c || c.byPost {
		return
	}
	c.byPost = true
	close(c.answered)
	i.putLocked(item{Message: Message{i.last, acp.Compact(nil, data)}})
}

// refused is the end of a message that the runtime will not take. The instance may be gone with it.
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
	if c := i.calls[e.Key()]; c != nil {
		i.byPostLocked(e, c, answer)
		delete(i.calls, e.Key())
	}
	return nil
}
