package mcp_test

import (
	"slices"
	"testing"
)

func TestWhatIsASecretForCertain(t *testing.T) {
	variables := map[string]string{"GITHUB_TOKEN": "value-of-a-variable", "REGION": "europe-west-1"}
	lookup := func(name string) (string, bool) { v, ok := variables[name]; return v, ok }
	for text, want := range map[string][]string{
		`{"type":"local","command":["x"],"env":{"NODE_ENV":"production","API_KEY":"small-letters","TOKEN":"short","PLAIN":"aB3dE6gH9jK2mN5p","TOKEN_FILE":"/run/a/token"}}`: {"aB3dE6gH9jK2mN5p", "small-letters"},
		`{"type":"remote","transport":"http","url":"https://me:pass-word@h/x?access_token=of%2Faddress&lang=english-uk"}`:                                                   {"of%2Faddress", "of/address", "pass-word"},
		`{"type":"remote","transport":"http","url":"https://h/x","headers":{"Authorization":"Bearer of-a-header","Accept":"application/json"}}`:                             {"of-a-header"},
		`{"type":"remote","transport":"http","url":"https://h/x","bearerTokenEnvVar":"GITHUB_TOKEN","envHeaders":{"X-Region":"REGION","X-Auth":"GITHUB_TOKEN"}}`:            {"value-of-a-variable"},
	} {
		have := parse(t, text).Certain(lookup)
		slices.Sort(have)
		if !slices.Equal(have, want) {
			t.Errorf("%s: %q, want %q", text, have, want)
		}
	}
}
