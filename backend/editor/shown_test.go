package editor

import (
	"fmt"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	sessions "deskhand/backend/session"
)

// A prompt is taken out of the queue while the journal cannot be read, and the editor opens its session again in a moment in which it cannot look
// for it either: it is answered all the same, when both can be read.
func TestOpeningAgainAnswersWhatLeftTheQueueUnseen(t *testing.T) {
	o := openOffice(t)
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
	// hears has the editor hear of all that has happened so far.
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
	<-sought
	broken.Store("")
	hears("when all is well")
	if m := p.answer(waits); m.Error != nil || !strings.Contains(string(m.Result), `"stopReason":"cancelled"`) {
		t.Errorf("%+v %s", m.Error, m.Result)
	}
}
