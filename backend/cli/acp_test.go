package cli

import (
	"context"
	"testing"
	"testing/synctest"
	"time"
)

// TestTurnsAfterTheEditorIsGone: after the editor is gone, a working turn runs to its end, whatever waits beside it, and turns that all wait
// for a person get personsTime.
func TestTurnsAfterTheEditorIsGone(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		ends, works, signal time.Duration // since the start: when the last turn ends, when the last turn stops working, when a signal comes
		want                time.Duration
	}{
		"one works for an hour beside one that waits": {ends: time.Hour, works: time.Hour, want: time.Hour},
		"all wait":                    {ends: time.Hour, want: personsTime},
		"all wait after half an hour": {ends: 2 * time.Hour, works: 30 * time.Minute, want: 30*time.Minute + personsTime},
		"one is answered in time":     {ends: 9 * time.Minute, want: 9 * time.Minute},
		"a signal":                    {ends: time.Hour, works: time.Hour, signal: time.Minute, want: time.Minute},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				ctx, cancel := context.WithCancel(t.Context())
				defer cancel()
				if tc.signal > 0 {
					defer time.AfterFunc(tc.signal, cancel).Stop()
				}
				begun := time.Now()
				until := func(end time.Duration, n int) func() int {
					return func() int {
						if time.Since(begun) < end {
							return n
						}
						return 0
					}
				}
				lastTurns(ctx, until(tc.ends, 2), until(tc.works, 1))
				if took := time.Since(begun); took < tc.want-time.Second || took > tc.want+time.Second {
					t.Errorf("it took %s, want %s", took, tc.want)
				}
			})
		})
	}
}
