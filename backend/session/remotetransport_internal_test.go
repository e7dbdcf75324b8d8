package session

import (
	"encoding/json"
	"testing"

	"deskhand/backend/acp"
	"deskhand/backend/entries"
	"deskhand/backend/journal"
	"deskhand/backend/transcript"
)

// A request that the agent has answered has arrived, even when the program ended before that was stored: it is not sent again.
func TestUnsentRequestsLeaveOutAnsweredOnes(t *testing.T) {
	t.Parallel()
	past := pastGeneration{generation: 1, turn: "t", requests: map[string]json.RawMessage{}, asks: map[acp.Key]string{}, answered: map[acp.Key]bool{}}
	for n, f := range []journal.Frame{
		{Dir: journal.Note, Data: mustJSON(transcript.Note{Note: transcript.NoteTurnBegan, Turn: "t"})},
		{Dir: journal.Out, Data: []byte(`{"jsonrpc":"2.0","id":3,"method":"session/prompt","params":{}}`)},
		{Dir: journal.Out, Data: []byte(`{"jsonrpc":"2.0","id":4,"method":"session/set_mode","params":{}}`)},
		{Dir: journal.In, Data: []byte(`{"jsonrpc":"2.0","id":4,"result":{}}`)},
		{Dir: journal.Out, Data: []byte(`{"jsonrpc":"2.0","id":5,"method":"session/set_mode","params":{}}`)},
	} {
		f.N, f.Generation = int64(n), 1
		past.take(f)
	}
	v := conversation{turn: &Turn{Turn: entries.Turn{ID: "t"}}}
	v.remote.v = &v
	lines, again := v.remote.unsent(t.Context(), &past, 1)
	if !again || len(lines) != 2 || len(lines[0]) != 0 || len(lines[1]) == 0 || past.prompted.at != 1 {
		t.Errorf("%v, %q; the prompt is the %dth", again, lines, past.prompted.at)
	}
}
