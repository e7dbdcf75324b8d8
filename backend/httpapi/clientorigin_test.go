package httpapi_test

import (
	"net/http"
	"path/filepath"
	"testing"

	"deskhand/backend/session"
)

// The client's and the command line's tests cover the routes' effects; this test covers their refusals.
func TestOriginsOverTheAPI(t *testing.T) {
	c, work := openSkills(t)
	c.refused("GET", "agents/nobody/sessions", "", http.StatusBadRequest, "agent.unknown")
	c.refused("GET", "agents/claude/sessions?directory=here", "", http.StatusBadRequest, "directory.relative")
	c.refused("GET", "agents/claude/sessions", "", http.StatusConflict, "agent.not_installed")
	c.refused("POST", "sessions/import", `{"agent":"nobody","acpSessionId":"x","cwd":"/"}`, http.StatusBadRequest, "agent.unknown")
	c.refused("POST", "sessions/import", `{"agent":"claude","acpSessionId":"x","cwd":"`+filepath.ToSlash(filepath.Join(work, "gone"))+`"}`, http.StatusBadRequest, "directory.missing")
	c.refused("POST", "sessions/import", `{"agent":"claude","acpSessionId":"","cwd":"/"}`, http.StatusBadRequest, "request.invalid")
	c.refused("POST", "sessions/none/fork", "", http.StatusNotFound, "not_found")
	c.refused("POST", "sessions/none/continue", `{"agent":"claude"}`, http.StatusNotFound, "not_found")
	c.refused("GET", "sessions/none/summary", "", http.StatusNotFound, "not_found")
	c.refused("POST", "sessions/none/prompt", `{"message":"x","when":"steer"}`, http.StatusNotFound, "not_found")
	c.refused("POST", "sessions/none/prompt", `{"message":"x","when":"sometime"}`, http.StatusBadRequest, "request.invalid")

	var s, next session.Session // claude is not installed here: the session fails to start, and says so
	c.call("POST", "sessions/import", `{"agent":"claude","acpSessionId":"x","cwd":"`+filepath.ToSlash(work)+`"}`, http.StatusCreated, &s)
	if s.Origin == nil || s.Origin.Kind != "import" || s.Offers == nil {
		t.Errorf("import: got %+v, want the origin import", s)
	}
	c.call("POST", "sessions/import", `{"agent":"claude","acpSessionId":"x","cwd":"`+filepath.ToSlash(work)+`"}`, http.StatusCreated, &next)
	if next.ID != s.ID {
		t.Errorf("imported twice: %s and %s", s.ID, next.ID)
	}
	c.call("POST", "sessions/"+s.ID+"/continue", `{"agent":"codex"}`, http.StatusCreated, &next)
	if next.Origin == nil || next.Origin.Session != s.ID || next.Agent != "codex" || next.Draft == "" {
		t.Errorf("continue: got %+v, want codex with a draft, from %s", next, s.ID)
	}
	var sum struct{ Text string }
	c.call("GET", "sessions/"+s.ID+"/summary", "", http.StatusOK, &sum)
	if sum.Text != next.Draft {
		t.Errorf("%q, and the draft of another agent's is %q", sum.Text, next.Draft)
	}
}
