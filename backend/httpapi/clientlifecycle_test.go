package httpapi_test

import (
	"encoding/json"
	"net/http"
	"os"
	"path/filepath"
	"testing"

	"deskhand/backend/lifecycle"
	"deskhand/backend/session"
	"deskhand/backend/workspace"
)

func TestSessionLifeOverHTTP(t *testing.T) {
	c := openSettings(t, "")
	from, to := filepath.Join(t.TempDir(), "from"), filepath.Join(t.TempDir(), "to")
	for _, path := range []string{from, to} {
		if err := os.Mkdir(path, 0o700); err != nil {
			t.Fatal(err)
		}
	}
	body := func(v any) string {
		data, _ := json.Marshal(v)
		return string(data)
	}
	var s session.Session
	c.call("POST", "sessions", body(session.New{Agent: "mock", Cwd: from}), http.StatusCreated, &s)
	path := "sessions/" + s.ID

	c.call("DELETE", path, "", http.StatusNoContent, nil)
	c.until(func(kind string, data []byte) bool {
		var gone session.Removed
		return kind == "session.removed" && json.Unmarshal(data, &gone) == nil && gone.ID == s.ID
	})
	c.call("DELETE", path, "", http.StatusNoContent, nil)
	c.refused("GET", path, "", http.StatusNotFound, "not_found")
	c.refused("PATCH", path, `{"draft":"x"}`, http.StatusNotFound, "not_found")
	c.refused("POST", path+"/prompt", `{"message":"x"}`, http.StatusNotFound, "not_found")
	var back session.Session
	c.call("POST", path+"/restore", "", http.StatusOK, &back)
	if back.ID != s.ID || back.Phase != lifecycle.Closed {
		t.Errorf("restore: got %+v, want the closed session %s", back, s.ID)
	}

	var list session.Page[workspace.KnownWorkspace]
	c.call("GET", "workspaces", "", http.StatusOK, &list)
	if len(list.Items) != 1 || list.Items[0].Path != from || list.Items[0].Sessions != 1 || list.Items[0].Missing {
		t.Fatalf("workspaces: got %+v, want one session in %s", list, from)
	}
	relink := "workspaces/" + list.Items[0].ID + "/relink"
	c.refused("POST", relink, `{"path":"to"}`, http.StatusBadRequest, "directory.relative")
	c.refused("POST", relink, body(map[string]string{"path": to + "none"}), http.StatusBadRequest, "directory.missing")
	c.refused("POST", "workspaces/none/relink", body(map[string]string{"path": to}), http.StatusNotFound, "not_found")
	var w workspace.KnownWorkspace
	c.call("POST", relink, body(map[string]string{"path": to}), http.StatusOK, &w)
	if w.Path != to || w.ID != list.Items[0].ID || w.Place != "local" {
		t.Errorf("relink: got %+v, want %s with the same id", w, to)
	}
	c.call("GET", path, "", http.StatusOK, &back)
	if back.Cwd != to {
		t.Errorf("session: got %+v, want the directory %s", back, to)
	}

	c.call("DELETE", path+"?undo=false", "", http.StatusNoContent, nil)
	c.refused("POST", path+"/restore", "", http.StatusNotFound, "not_found")
	c.call("DELETE", path, "", http.StatusNoContent, nil)
	c.refused("DELETE", "sessions/none", "", http.StatusNotFound, "not_found")
	c.call("GET", "workspaces", "", http.StatusOK, &list)
	if len(list.Items) != 0 {
		t.Errorf("workspaces: got %+v, want none", list)
	}
}
