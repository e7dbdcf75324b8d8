package remote

import (
	"io"
	"net/http"
	"sync/atomic"
	"testing"
	"testing/synctest"
)

// An agent that is still being installed when it is let go is ended there, whatever kind of runtime that is: it would run for ever.
func TestCloseEndsStartingAgent(t *testing.T) {
	t.Parallel()
	for _, name := range []string{"Deskhand", "another"} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				th := runtimeThere(t, name)
				asked, over := make(chan struct{}, 2), make(chan struct{}, 2)
				var removed atomic.Int32
				th.on("GET", notYet)
				th.on("POST", func(_ http.ResponseWriter, r *http.Request) {
					_, _ = io.Copy(io.Discard, r.Body)
					asked <- struct{}{}
					<-r.Context().Done()
					over <- struct{}{}
				})
				th.on("DELETE", func(w http.ResponseWriter, _ *http.Request) {
					removed.Add(1)
					w.WriteHeader(http.StatusNoContent)
				})
				i := th.r.Instance(Start{ServerID: "a", Agent: "x"})
				sent := make(chan error, 1)
				go func() { sent <- i.Send(t.Context(), []byte(initialize)) }()
				within(t, "message that starts it", asked)
				if err := i.Close(); err != nil {
					t.Error(err)
				}
				is(t, "Send", within(t, "end of Send", sent), ErrClosed)
				within(t, "end of the message that starts it", over)
				if n := removed.Load(); n != 1 {
					t.Errorf("removals of the instance: got %d, want 1", n)
				}
				is(t, "what is sent then", i.Send(t.Context(), []byte(initialize)), ErrClosed)
				if len(asked) > 0 {
					t.Error("it is started again behind its end")
				}
			})
		})
	}
}

// What has never reached a runtime is not ended there.
func TestCloseBeforeStartSendsNothing(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		th := runtimeThere(t, "Deskhand")
		th.on("GET", notYet)
		th.on("DELETE", func(http.ResponseWriter, *http.Request) { t.Error("it is ended there") })
		i := th.r.Instance(Start{ServerID: "a", Agent: "x"})
		if err := i.Close(); err != nil {
			t.Error(err)
		}
	})
}
