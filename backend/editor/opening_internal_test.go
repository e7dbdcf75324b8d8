package editor

import (
	"context"
	"testing"

	"deskhand/backend/acp"
)

// TestASessionThatNobodyWaitsForIsNotOpen: an editor that goes while its session is created does not get the session's id, since nobody would
// discard the session then.
func TestASessionThatNobodyWaitsForIsNotOpen(t *testing.T) {
	t.Parallel()
	gone, cancel := context.WithCancel(t.Context())
	cancel()
	for name, s := range map[string]*shown{
		"could not be read":   {ctx: t.Context()},
		"the editor has gone": {ctx: gone, now: session{Phase: "ready"}},
	} {
		s.opening = func(any, *acp.Error) { t.Errorf("%s: it was answered", name) }
		if s.opened() {
			t.Errorf("%s: it is open", name)
		}
	}
}
