package agents_test

import (
	"encoding/json"
	"testing"

	"deskhand/backend/agents"
)

// TestQuirksAreAsMeasured: each of these quirks was observed (no fs for Gemini, only HTTP for Copilot, no MCP for Pi, Qwen's own requests,
// a slow session of Claude).
func TestQuirksAreAsMeasured(t *testing.T) {
	t.Parallel()
	c, _ := machine(t, `{"agents":[{"id":"mine","command":"x"},{"id":"pi","command":"x","override":true}]}`, "deskhand")
	defer closing(t, c)
	for id, want := range map[string]string{
		"gemini":             `{"noFs":true,"skillDirs":[".gemini/skills"],"loadNextMinute":true,"pdf":true,"plainLinks":true,"joinsBlocks":true,"imageBytes":2097152,"cleanUp":{"settings":".gemini/settings.json","setting":"general.sessionRetention.enabled","age":"30 days","home":"GEMINI_CLI_HOME","dir":".gemini/tmp","files":"*/chats/session-*.jsonl","context":["\u003csession_context\u003e","\u003chook_context\u003e"]}}`,
		"github-copilot-cli": `{"mcp":["http","sse"],"skillDirs":[".claude/skills"]}`,
		"pi":                 `{"mcp":[]}`,
		"qwen-code":          `{"ownTools":"stdio","refuse":["craft/","qwen/"],"skillDirs":[".qwen/skills"],"namesLinks":true,"plainLinks":true,"joinsBlocks":true}`,
		"claude":             `{"skillDirs":[".claude/skills"],"sessionSeconds":120,"pdf":true}`,
		"codex":              `{"skillDirs":[".agents/skills"]}`,
		"opencode":           `{"skillDirs":[".opencode/skills"],"pdf":true,"linkType":"text/plain"}`,
		"mine":               `{}`,
		"nobody":             `{}`,
	} {
		got, err := json.Marshal(c.Quirks(id))
		if err != nil || string(got) != want {
			t.Errorf("Quirks(%s): got %s, %v, want %s", id, got, err, want)
		}
	}
	if q := c.Quirks("qwen-code"); !q.Refuses("craft/drainMidTurnQueue") || !q.Refuses("qwen/notify/x") || q.Refuses("session/request_permission") {
		t.Errorf("Quirks(qwen-code): got %+v, want its own requests refused, permissions not", q)
	}
	if c.Quirks("claude").Refuses("craft/drainMidTurnQueue") {
		t.Error("what is Qwen's is refused to Claude")
	}
	if a := get(t, c, "pi"); a.Quirks == nil || a.Quirks.MCP == nil || len(a.Quirks.MCP) > 0 {
		t.Errorf("pi: got quirks %+v, want an empty list of MCP transports", a.Quirks)
	}
	if a := get(t, c, agents.Demo); a.Quirks != nil {
		t.Errorf("mock: got quirks %+v, want none", a.Quirks)
	}
}
