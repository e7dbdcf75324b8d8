package transcript_test

import (
	"testing"

	"deskhand/backend/journal"
	"deskhand/backend/transcript"
)

func TestAccountIsAFact(t *testing.T) {
	t.Parallel()
	f := transcript.New("s", transcript.Facts{})
	for _, message := range []string{
		`{"jsonrpc":"2.0","method":"_auth/status_update","params":{"authStatus":{"kind":"account","label":"Claude Max","account":{"email":"ada@example.org"}}}}`,
		`{"jsonrpc":"2.0","method":"_auth/status_update","params":{"authStatus":7}}`,
	} {
		f.Apply(journal.Frame{N: 1, Dir: journal.In, Data: []byte(message)})
	}
	entries, changed := f.Take()
	if a := f.Facts.Account; a == nil || a.Words() != "Claude Max (ada@example.org)" || !changed || len(entries) != 0 {
		t.Errorf("got account %+v, changed %v and %d entries, want that of ada@example.org and no entry", a, changed, len(entries))
	}
}

func TestModelInUse(t *testing.T) {
	t.Parallel()
	option := func(value string) []transcript.ConfigOption {
		return []transcript.ConfigOption{{ID: "mode", Value: "ask"}, {ID: "m", Category: "model", Value: value}}
	}
	for _, c := range []struct {
		facts transcript.Facts
		want  string
	}{
		{transcript.Facts{}, ""},
		{transcript.Facts{Model: "large-1"}, "large-1"},
		{transcript.Facts{Options: option("opus"), Model: "large-1"}, "opus"},
		{transcript.Facts{Options: option("default"), Model: "large-1"}, "large-1"},
		{transcript.Facts{Options: option("default")}, "default"},
		{transcript.Facts{Options: option(""), Model: "large-1"}, "large-1"},
	} {
		if got := c.facts.ModelInUse(); got != c.want {
			t.Errorf("ModelInUse of %+v: got %q, want %q", c.facts, got, c.want)
		}
	}
}
