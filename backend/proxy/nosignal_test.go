package proxy_test

import (
	"errors"
	"io"
	"testing"
	"testing/synctest"
	"time"

	"deskhand/backend/proxy"
	"deskhand/backend/proxy/proxytest"
)

// voiceless is a process that cannot receive signals, as on Windows.
type voiceless struct{ proxy.Process }

func (voiceless) Interrupt() error { return proxy.ErrNoSignal }
func (voiceless) Terminate() error { return proxy.ErrNoSignal }

// TestCloseSkipsGraceWithoutSignals: an agent that ignores the end of its stdin and cannot receive signals is killed next, and an interrupt
// returns ErrNoSignal.
func TestCloseSkipsGraceWithoutSignals(t *testing.T) {
	for heard, most := range map[bool]time.Duration{true: 1600 * time.Millisecond, false: 600 * time.Millisecond} {
		synctest.Test(t, func(t *testing.T) {
			over := make(chan struct{})
			defer close(over)
			spawn := proxytest.Spawn(func(io.Reader, io.Writer, io.Writer) int {
				<-over
				return 0
			})
			set, err := proxy.Open(proxy.Config{Spawn: func(c proxy.Command) (proxy.Process, error) {
				p, err := spawn(c)
				if heard {
					return p, err
				}
				return voiceless{p}, err
			}})
			if err != nil {
				t.Fatal(err)
			}
			i, err := set.Start(t.Context(), "a", "fake", proxy.Command{})
			if err != nil {
				t.Fatal(err)
			}
			if err := i.Interrupt(); errors.Is(err, proxy.ErrNoSignal) == heard {
				t.Errorf("Interrupt, heard %v: got error %v, want ErrNoSignal only when not heard", heard, err)
			}
			begun := time.Now()
			if err := i.Close(); err != nil {
				t.Error(err)
			}
			if took := time.Since(begun); took > most || heard && took < time.Second {
				t.Errorf("Close, heard %v: got %s, want %s at most", heard, took, most)
			}
			if err := set.Close(); err != nil {
				t.Error(err)
			}
		})
	}
}
