package httpapi

import (
	"bytes"
	"context"
	"crypto/sha256"
	"errors"
	"io"
	"maps"
	"net/http"
	"regexp"
	"slices"
	"strings"
	"sync"
	"time"

	"deskhand/backend/session"
)

// keyHeader names a write, so that repeated sends are executed once (draft-ietf-httpapi-idempotency-key-header-07).
const keyHeader = "Idempotency-Key"

const (
	repeatFor   = time.Hour // how long an answer is kept
	mostRepeats = 1000      // number of kept answers
	mostAnswers = 8 << 20   // bytes of the kept answers
)

// keyForm matches a string in the form of RFC 9651, or bare.
var keyForm = regexp.MustCompile(`^(?:"[!#-\[\]-~]{1,255}"|[!#-\[\]-~]{1,255})$`)

// repeats executes a write once when the write comes again under the same key, because a client cannot know whether the request or its
// answer was lost, and gives the repeats the first answer. The answers are only in memory: a restarted Deskhand executes the write again.
type repeats struct {
	mu    sync.Mutex
	held  map[[sha256.Size]byte]*keyed
	done  []*keyed // answered writes, the oldest first
	bytes int      // of the answers
}

// keyed is a write with a key.
type keyed struct {
	id, body [sha256.Size]byte
	over     chan struct{} // closed when answered
	answer   *answered     // nil before the answer, and after a failure, which may be retried
	at       time.Time
}

// answered is a recorded answer.
type answered struct {
	header http.Header
	status int
	body   bytes.Buffer
}

func (a *answered) Header() http.Header { return a.header }

func (a *answered) WriteHeader(status int) {
	if a.status == 0 && status >= http.StatusOK {
		a.status = status
	}
}

func (a *answered) Write(p []byte) (int, error) {
	a.WriteHeader(http.StatusOK)
	return a.body.Write(p)
}

func (a *answered) writeTo(w http.ResponseWriter) {
	maps.Copy(w.Header(), a.header)
	w.WriteHeader(a.status)
	_, _ = w.Write(a.body.Bytes()) // fails only when the caller is gone
}

// repeatable reports whether a request is a write with a key. Uploads and terminal input are streams: recording them would cost their size,
// and a file that comes twice is stored once anyhow.
func repeatable(r *http.Request) bool {
	kind := r.Header.Get("Content-Type")
	return doesMore(r) && r.Header.Get(keyHeader) != "" && (kind == "" || strings.HasPrefix(kind, "application/json"))
}

func (p *repeats) serve(w http.ResponseWriter, r *http.Request, next http.Handler) {
	if !repeatable(r) {
		next.ServeHTTP(w, r)
		return
	}
	keys := r.Header.Values(keyHeader)
	if len(keys) != 1 || !keyForm.MatchString(keys[0]) {
		WriteProblem(w, Problem{Type: "invalid_request", Code: "idempotency.key", Detail: keyHeader + " is one key of up to 255 printable characters"})
		return
	}
	body, err := whole(w, r)
	if err != nil {
		WriteProblem(w, Problem{Type: err.kind, Detail: err.text})
		return
	}
	k := keyed{
		id:   sha256.Sum256([]byte(strings.Join([]string{r.Header.Get("Authorization"), r.Method, r.URL.RequestURI(), strings.Trim(keys[0], `"`)}, "\x00"))),
		body: sha256.Sum256(body),
	}
	for {
		one, mine := p.take(k)
		if one.body != k.body {
			WriteProblem(w, Problem{Type: "conflict", Code: "idempotency.reused", Detail: "another request had this " + keyHeader})
			return
		}
		if mine {
			r.Body = io.NopCloser(bytes.NewReader(body))
			p.do(one, r, next).writeTo(w)
			return
		}
		select {
		case <-one.over:
		case <-r.Context().Done():
			return
		}
		if one.answer != nil {
			one.answer.writeTo(w)
			return
		}
	}
}

// whole returns the body of a request. In the window bodies have no length.
func whole(w http.ResponseWriter, r *http.Request) ([]byte, *refusal) {
	in, err := bodyOf(w, r, maxPrompt)
	var body []byte
	if err == nil {
		body, err = io.ReadAll(in)
	}
	if err == nil {
		return body, nil
	}
	refused, _ := errors.AsType[*refusal](err) // all errors of bodyOf are refusals
	return nil, refused
}

// take returns the write of a key; mine reports whether the caller must execute the write.
func (p *repeats) take(k keyed) (one *keyed, mine bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.forget()
	if one = p.held[k.id]; one != nil {
		return one, false
	}
	if p.held == nil {
		p.held = map[[sha256.Size]byte]*keyed{}
	}
	k.over = make(chan struct{})
	p.held[k.id] = &k
	return &k, true
}

// do executes a write. The write continues when its caller leaves, until the program ends: a repeat gets the result.
func (p *repeats) do(one *keyed, r *http.Request, next http.Handler) *answered {
	a := &answered{header: http.Header{}}
	defer func() {
		p.mu.Lock()
		defer p.mu.Unlock()
		if a.status >= 200 && a.status < 300 {
			one.answer, one.at = a, time.Now()
			p.done = append(p.done, one)
			p.bytes += a.body.Len()
			p.forget()
		} else {
			delete(p.held, one.id)
		}
		close(one.over)
	}()
	ctx, cancel := context.WithCancel(context.WithoutCancel(r.Context()))
	defer cancel()
	if life, ok := r.Context().Value(lifeKey{}).(context.Context); ok {
		defer context.AfterFunc(life, cancel)() //nolint:contextcheck // the end of the program ends the write
	}
	if g, ok := r.Context().Value(callerKey{}).(*grant); ok {
		defer context.AfterFunc(g.ctx, cancel)() //nolint:contextcheck // the end of the write's token ends the write too
	}
	next.ServeHTTP(a, r.WithContext(session.Patiently(ctx))) // a repeat must get the result, and not execute the write twice
	a.WriteHeader(http.StatusOK)
	return a
}

type lifeKey struct{}

// WithLife adds the server's life to a call's context: a call that continues without its caller ends with that life.
func WithLife(ctx, life context.Context) context.Context {
	return context.WithValue(ctx, lifeKey{}, life)
}

// forget drops answers that are too old or too many, and the largest when all together are too large. The newest stays: the caller that has
// lost the newest answer repeats the call in a moment.
func (p *repeats) forget() {
	for len(p.done) > 0 && (time.Since(p.done[0].at) > repeatFor || len(p.done) > mostRepeats) {
		p.drop(0)
	}
	for len(p.done) > 1 && p.bytes-p.done[len(p.done)-1].answer.body.Len() > mostAnswers {
		largest := 0
		for i, one := range p.done[:len(p.done)-1] {
			if one.answer.body.Len() > p.done[largest].answer.body.Len() {
				largest = i
			}
		}
		p.drop(largest)
	}
}

func (p *repeats) drop(i int) {
	p.bytes -= p.done[i].answer.body.Len()
	delete(p.held, p.done[i].id)
	p.done = slices.Delete(p.done, i, i+1)
}
