package editor

import (
	"context"
	"testing"

	"deskhand/backend/acp"
)

// An editor that goes while its session is being made is not told that it is open: nobody would take the session away then.
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
