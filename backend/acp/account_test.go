package acp_test

import (
	"encoding/json"
	"strings"
	"testing"

	"deskhand/backend/acp"
)

// The messages are those of claude-agent-acp 0.101.0, codex-acp 2.6.0 and the draft of the protocol.
func TestParseAccount(t *testing.T) {
	const pushed, draft = acp.MethodAccountUpdate, acp.MethodStatusUpdate
	for _, c := range []struct {
		method, params string
		want           acp.Account
		words          string
		told           bool
	}{
		{
			pushed, `{"authStatus":{"kind":"account","label":"Claude Max","account":{"plan":"max","email":"ada@example.org","organization":"Ada"}}}`,
			acp.Account{Kind: "account", Label: "Claude Max", Email: "ada@example.org", Organization: "Ada", Plan: "max"},
			"Claude Max (ada@example.org)", true,
		},
		{pushed, `{"authStatus":{"kind":"account","label":"ChatGPT Plus","account":{"email":7}}}`, acp.Account{Kind: "account", Label: "ChatGPT Plus"}, "ChatGPT Plus", true},
		{pushed, `{"authStatus":{"kind":"api_key","label":"Anthropic API key","detail":"env"}}`, acp.Account{Kind: "api_key", Label: "Anthropic API key", Detail: "env"}, "Anthropic API key (env)", true},
		{pushed, `{"authStatus":{"kind":"none","label":"Not logged in"}}`, acp.Account{Kind: "none", Label: "Not logged in"}, "Not logged in", true},
		{pushed, `{"authStatus":{}}`, acp.Account{}, "", false},
		{pushed, `[]`, acp.Account{}, "", false},
		{
			draft, `{"state":"authenticated","accounts":[{"label":"Old"},7,{"label":"Team","active":true,"email":"ada@example.org"}]}`,
			acp.Account{Kind: "account", Label: "Team", Email: "ada@example.org"},
			"Team (ada@example.org)", true,
		},
		{draft, `{"state":"authenticated","accounts":[{"email":"ada@example.org"}]}`, acp.Account{Kind: "account", Email: "ada@example.org"}, "account (ada@example.org)", true},
		{draft, `{"state":"unauthenticated"}`, acp.Account{Kind: "none"}, "none", true},
		{draft, `{"state":"authenticated"}`, acp.Account{}, "", false},
		{"session/update", `{"authStatus":{"kind":"none"}}`, acp.Account{}, "", false},
	} {
		got, told := acp.ParseAccount(c.method, json.RawMessage(c.params))
		if got != c.want || told != c.told || got.Words() != c.words {
			t.Errorf("ParseAccount(%s, %s): got %+v, %v, %q, want %+v, %v, %q", c.method, c.params, got, told, got.Words(), c.want, c.told, c.words)
		}
	}
	long, _ := acp.ParseAccount(pushed, json.RawMessage(`{"authStatus":{"kind":"account","label":"`+strings.Repeat("é", 500)+`"}}`))
	if n := len(long.Label); n == 0 || n > 320 {
		t.Errorf("a label of 1000 bytes: got %d bytes, want at most 320", n)
	}
}

func TestParseTokens(t *testing.T) {
	for usage, want := range map[string]string{
		`{"inputTokens":1,"outputTokens":2,"cachedReadTokens":3,"cachedWriteTokens":4,"thoughtTokens":5,"totalTokens":99}`: `{"Input":1,"Output":2,"CachedRead":3,"CachedWrite":4,"Thought":5,"Total":99}`,
		`{"inputTokens":"1","outputTokens":2.0,"thoughtTokens":5}`:                                                         `{"Input":1,"Output":2,"CachedRead":null,"CachedWrite":null,"Thought":5,"Total":3}`,
		`{"inputTokens":-1,"totalTokens":7}`:                                                                               `{"Input":null,"Output":null,"CachedRead":null,"CachedWrite":null,"Thought":null,"Total":7}`,
	} {
		tokens, told := acp.ParseTokens(json.RawMessage(usage))
		got, err := json.Marshal(tokens)
		if err != nil || string(got) != want || !told {
			t.Errorf("ParseTokens(%s): got %s, %v, %v, want %s", usage, got, told, err, want)
		}
	}
	for _, usage := range []string{``, `null`, `{}`, `[]`, `{"inputTokens":null}`, `{"inputTokens":{}}`, `{broken`} {
		if tokens, told := acp.ParseTokens(json.RawMessage(usage)); told {
			t.Errorf("ParseTokens(%s): got %+v, want nothing told", usage, tokens)
		}
	}
}
