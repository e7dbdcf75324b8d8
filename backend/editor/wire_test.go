package editor

import (
	"context"
	"io"
	"net/http"
	"testing"
	"testing/synctest"
	"time"

	"deskhand/backend/testkit"
)

// TestAnEditorThatDoesNotRead: an editor that has stopped reading blocks neither the detection of its end nor our own end.
func TestAnEditorThatDoesNotRead(t *testing.T) {
	for name, end := range map[string]func(in *io.PipeWriter, cancel func()){
		"its input ends": func(in *io.PipeWriter, _ func()) { _ = in.Close() },
		"a signal":       func(_ *io.PipeWriter, cancel func()) { cancel() },
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				in, write := io.Pipe()
				read, out := io.Pipe() // nobody reads
				ctx, cancel := context.WithCancel(t.Context())
				defer cancel()
				done := make(chan error, 1)
				go func() { done <- Serve(ctx, Config{HTTP: http.DefaultClient}, in, out) }()
				for range 3 {
					_, _ = io.WriteString(write, `{"jsonrpc":"2.0","id":1,"method":"nobody/knows"}`+"\n")
				}
				synctest.Wait()
				end(write, cancel)
				select {
				case <-done:
				case <-time.After(testkit.Limit):
					t.Error("it does not end")
				}
				_, _ = write.Close(), read.Close() // ends the blocked write
				synctest.Wait()
			})
		})
	}
}
