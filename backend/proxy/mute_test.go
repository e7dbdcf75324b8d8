package proxy_test

import (
	"io"
	"os"
	"testing"
	"testing/synctest"
	"time"

	"deskhand/backend/proxy"
	"deskhand/backend/proxy/proxytest"
)

// An agent is ended after the end of its output, because no more answers can come. A program at a pseudo-terminal writes to the terminal,
// and has no output of its own from the beginning.
func TestEndOfOutputEndsAgentsAndNoTerminals(t *testing.T) {
	for name, c := range map[string]struct {
		terminal *os.File
		want     proxy.Phase
	}{
		"an agent":   {nil, proxy.Exited},
		"a terminal": {os.Stdin, proxy.Running},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				set, err := proxy.Open(proxy.Config{Spawn: proxytest.Spawn(func(stdin io.Reader, stdout, _ io.Writer) int {
					if err := stdout.(io.Closer).Close(); err != nil {
						t.Error(err)
					}
					<-t.Context().Done()
					return 0
				})})
				if err != nil {
					t.Fatal(err)
				}
				inst, err := set.Start(t.Context(), "one", "fake", proxy.Command{Terminal: c.terminal})
				if err != nil {
					t.Fatal(err)
				}
				time.Sleep(time.Minute)
				synctest.Wait()
				if got := inst.Status().Phase; got != c.want {
					t.Errorf("%s whose output ended a minute ago: got phase %s, want %s", name, got, c.want)
				}
				if err := set.Close(); err != nil {
					t.Error(err)
				}
			})
		})
	}
}
