package transcript_test

import (
	"testing"

	"deskhand/backend/transcript"
)

func TestForkIDKeepsTheTimeOfAnID(t *testing.T) {
	const id = "019d0c1a-2b3c-7aaa-8bbb-0123456789ab"
	got := transcript.ForkID("fork", id)
	if got == id || got[:15] != id[:15] || got == transcript.ForkID("another", id) || got != transcript.ForkID("fork", id) {
		t.Errorf("ForkID(fork, %s): got %s, want one of the same time that only this fork has", id, got)
	}
	if got := transcript.ForkID("fork", "item-1"); got != "item-1" {
		t.Errorf("ForkID(fork, item-1): got %s, want it unchanged", got)
	}
	if got := string(transcript.ForkNote("fork", []byte(`{"note":"session.ready"}`))); got != `{"note":"session.ready"}` {
		t.Errorf("ForkNote of a note without ids: got %s, want it unchanged", got)
	}
}
