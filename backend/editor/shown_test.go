package editor

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	sessions "deskhand/backend/session"
)

// TestOpeningAgainAnswersWhatLeftTheQueueUnseen: a prompt leaves the queue while the journal cannot be read, and the editor reopens its
// session while the queue cannot be read. The prompt is answered once both can be read.
func TestOpeningAgainAnswersWhatLeftTheQueueUnseen(t *testing.T) {
	o := openFixture(t)
	p, id, waits, item := o.held("echo mine")
	var broken atomic.Value
	broken.Store("/frames")
	sought, looked := make(chan struct{}), sync.Once{}
	below := *o.served.Load()
	above := http.Handler(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if part, _ := broken.Load().(string); r.Method == http.MethodGet && part != "" && strings.HasSuffix(r.URL.Path, part) {
			w.WriteHeader(http.StatusInternalServerError)
			if part == "/queue" {
				looked.Do(func() { close(sought) })
			}
			return
		}
		below.ServeHTTP(w, r)
	}))
	o.served.Store(&above)
	// hears waits until the editor has received everything up to now.
	hears := func(title string) {
		t.Helper()
		if _, err := o.Change(t.Context(), id, sessions.Patch{Title: &title}); err != nil {
			t.Fatal(err)
		}
		p.until("the title "+title, func(m received) bool { return strings.Contains(string(m.Params), title) })
	}
	if err := o.RemoveQueued(t.Context(), id, item); err != nil {
		t.Fatal(err)
	}
	hears("while the journal is broken")
	broken.Store("/queue")
	p.call("session/resume", fmt.Sprintf(`{"sessionId":%q,"cwd":%q,"mcpServers":[]}`, id, o.work))
	select {
	case <-sought:
	case <-time.After(10 * time.Second): // it was read again in between, and there is nothing to look for
	}
	broken.Store("")
	hears("when all is well")
	if m := p.answer(waits); m.Error != nil || !strings.Contains(string(m.Result), `"stopReason":"cancelled"`) {
		t.Errorf("answer: got Error %+v, Result %s, want Error nil and Result with \"\\\"stopReason\\\":\\\"cancelled\\\"\"", m.Error, m.Result)
	}
}

// asked answers calls by a function.
type asked func(*http.Request) (status int, body string, err error)

func (f asked) RoundTrip(r *http.Request) (*http.Response, error) {
	status, body, err := f(r)
	if err != nil {
		return nil, err
	}
	return &http.Response{StatusCode: status, Body: io.NopCloser(strings.NewReader(body)), Request: r}, nil
}

// TestALongMessageThatCannotBeReadAtOnce: a long message that cannot be read for a moment is read again, in its place. A damaged message is
// skipped.
func TestALongMessageThatCannotBeReadAtOnce(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct { // no other event comes meanwhile
		status      int
		first, then string
	}{
		"no answer":   {0, "a", "abc"},
		"unavailable": {http.StatusServiceUnavailable, "a", "abc"},
		"damaged":     {http.StatusInternalServerError, "ac", "ac"},
		"gone":        {http.StatusNotFound, "ac", "ac"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				body := func(text string) string {
					return fmt.Sprintf(`{"method":"session/update","params":{"update":{"sessionUpdate":"agent_message_chunk","content":{"type":"text","text":%q}}}}`, text)
				}
				tries := 0
				calls := asked(func(r *http.Request) (int, string, error) {
					switch after := r.URL.Query().Get("after"); {
					case strings.HasSuffix(r.URL.Path, "/frames/2"):
						tries++
						if tries > 1 {
							return http.StatusOK, body("b"), nil
						}
						if c.status == 0 {
							return 0, "", errors.New("the connection was broken")
						}
						return c.status, "{}", nil
					case after == "0":
						return http.StatusOK, fmt.Sprintf(`{"items":[{"seq":1,"dir":"in","body":%s},{"seq":2,"dir":"in","truncated":true,"body":"{"},{"seq":3,"dir":"in","body":%s}],"next":3}`, body("a"), body("c")), nil
					case after == "1":
						return http.StatusOK, fmt.Sprintf(`{"items":[{"seq":2,"dir":"in","truncated":true,"body":"{"},{"seq":3,"dir":"in","body":%s}],"next":3}`, body("c")), nil
					default:
						return http.StatusOK, `{"items":[],"next":3}`, nil
					}
				})
				said := ""
				s := &shown{e: &editor{cfg: Config{Tell: func(string) {}}, client: client{&http.Client{Transport: calls}}}, id: "s", ctx: t.Context(), mirror: newMirror(takes{})}
				s.mirror.out = func(update any) {
					var u struct{ Content struct{ Text string } }
					if raw, _ := update.(json.RawMessage); json.Unmarshal(raw, &u) == nil {
						said += u.Content.Text
					}
				}
				if whole := s.flush(); whole != (c.first == c.then) || said != c.first {
					t.Errorf("at first %q is shown, whole is %v", said, whole)
				}
				s.told.options = "[]"
				pass := func() (wishes int) {
					time.Sleep(time.Minute)
					synctest.Wait()
					s.mu.Lock()
					list := s.wishes
					s.wishes = nil
					s.mu.Unlock()
					for _, w := range list {
						w.do()
					}
					return len(list)
				}
				pass()
				if said != c.then {
					t.Errorf("then %q is shown", said)
				}
				if n := pass(); n > 0 {
					t.Errorf("%d more are wished for when all is read", n)
				}
			})
		})
	}
}

func TestFileURL(t *testing.T) {
	for path, want := range map[string]string{
		"/work/a b.txt": "file:///work/a%20b.txt", "C:/work/a.txt": "file:///C:/work/a.txt", "//server/share/a": "file:////server/share/a",
	} {
		if got := fileURL(path); got != want {
			t.Errorf("%s: %s, want %s", path, got, want)
		}
	}
}
