package editor

import (
	"encoding/json"
	"testing"
)

// TestTwoChangesAtOnceAreAnswered: two concurrent changes of settings are both answered, in either order. A new generation of the agent
// answers neither.
func TestTwoChangesAtOnceAreAnswered(t *testing.T) {
	t.Parallel()
	m := newMirror(takes{})
	out := func(id string) frame {
		return frame{Dir: "out", Method: "session/set_config_option", Body: json.RawMessage(`{"id":` + id + `}`)}
	}
	in := func(id string) frame { return frame{Dir: "in", Body: json.RawMessage(`{"id":` + id + `,"result":{}}`)} }
	for _, f := range []frame{out("4"), out("5"), in("4"), in("5"), in("6")} {
		m.apply(f)
	}
	for id, want := range map[string]bool{"4": true, "5": true, "6": false} {
		if _, answered := m.answers[id]; answered != want {
			t.Errorf("%s is answered: %v", id, answered)
		}
	}
	for _, f := range []frame{out("7"), {Dir: "note", Body: json.RawMessage(`{"note":"agent.starting"}`)}, in("7")} {
		m.apply(f)
	}
	if len(m.answers) > 0 {
		t.Errorf("another agent has answered %v", m.answers)
	}
}
