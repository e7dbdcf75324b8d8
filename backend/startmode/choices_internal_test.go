package startmode

import "testing"

func TestInWords(t *testing.T) {
	t.Parallel()
	for mode, want := range map[string]string{
		"ask": "Ask", "acceptEdits": "Accept edits", "read-only": "Read only", "auto_edit": "Auto edit", "YOLO": "YOLO", "": "",
		"https://agentclientprotocol.com/protocol/session-modes#agent": "Agent",
	} {
		if got := inWords(mode); got != want {
			t.Errorf("inWords(%q): got %q, want %q", mode, got, want)
		}
	}
}
