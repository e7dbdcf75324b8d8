package httpapi_test

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"deskhand/backend/agents"
	"deskhand/backend/httpapi"
	"deskhand/backend/processes"
	"deskhand/backend/proxy"
	"deskhand/backend/session"
	"deskhand/backend/settings"
	"deskhand/backend/storetest"
)

// openSettings returns the client API with settings in a file.
func openSettings(t *testing.T, file string) *clinic {
	t.Helper()
	db := storetest.Open(t, t.TempDir())
	set, err := proxy.Open(proxy.Config{Purpose: processes.ForSession})
	if err != nil {
		t.Fatal(err)
	}
	catalogue := agents.Open(agents.Config{})
	sessions, err := session.Open(t.Context(), session.Config{Store: db, Agents: catalogue, Proxy: set, Settings: settings.New(file)})
	if err != nil {
		t.Fatal(err)
	}
	server := httptest.NewServer(httpapi.NewClient(httpapi.ClientConfig{Sessions: sessions, Agents: catalogue}))
	c := &clinic{t: t, client: &http.Client{Transport: &http.Transport{}}, url: server.URL, gen: sessions.Feed().Gen()}
	t.Cleanup(func() {
		c.client.CloseIdleConnections()
		server.Close()
		for _, closing := range []func() error{sessions.Close, catalogue.Close, set.Close, db.Close} {
			if err := closing(); err != nil {
				t.Error(err)
			}
		}
	})
	return c
}

func TestSettingsOverHTTP(t *testing.T) {
	file := filepath.Join(t.TempDir(), "config", "settings.json")
	c := openSettings(t, file)
	var s settings.Settings
	c.call("GET", "settings", "", http.StatusOK, &s)
	if s.MemoryBudgetMiB <= 0 || s.MemoryBudgetMiB > 4096 || s.MemoryBudgetMiB != s.MemoryBudgetDefaultMiB || s.Path != file || s.Problem != "" || s.MemoryBudgetWorks != proxy.Measures {
		t.Errorf("settings: got %+v, want the default budget in %s", s, file)
	}
	c.call("PATCH", "settings", `{"memoryBudgetMiB":0}`, http.StatusOK, &s)
	if s.MemoryBudgetMiB != 0 {
		t.Errorf("settings: got %+v, want no budget", s)
	}
	c.until(func(kind string, data []byte) bool {
		var told settings.Settings
		return kind == "settings.upsert" && json.Unmarshal(data, &told) == nil && told == s
	})
	if data, err := os.ReadFile(file); err != nil || string(data) != "{\n  \"memoryBudgetMiB\": 0\n}\n" {
		t.Errorf("file: got %q, %v, want memoryBudgetMiB 0", data, err)
	}
	c.refused("PATCH", "settings", `{"memoryBudgetMiB":-1}`, http.StatusBadRequest, "settings.value")
	c.refused("PATCH", "settings", `{"memoryBudgetMiB":"2"}`, http.StatusBadRequest, "request.invalid")
	c.refused("PATCH", "settings", `{"memory":2}`, http.StatusBadRequest, "request.invalid")
	c.call("PATCH", "settings", `{}`, http.StatusOK, nil)

	if err := os.WriteFile(file, []byte("{\n oops"), 0o600); err != nil {
		t.Fatal(err)
	}
	c.refused("PATCH", "settings", `{"memoryBudgetMiB":5}`, http.StatusConflict, "settings.broken")
	c.call("GET", "settings", "", http.StatusOK, &s)
	if !strings.Contains(s.Problem, "line 2") || s.MemoryBudgetMiB != s.MemoryBudgetDefaultMiB {
		t.Errorf("settings: got %+v, want the default and a problem in line 2", s)
	}
	if data, err := os.ReadFile(file); err != nil || string(data) != "{\n oops" {
		t.Errorf("file: got %q, %v, want the broken file unchanged", data, err)
	}
	var list processes.ProcessList
	c.call("GET", "processes?pss=true", "", http.StatusOK, &list)
	if len(list.Items) != 0 || list.Self.PID != os.Getpid() || list.Self.StartedAt.IsZero() {
		t.Errorf("processes: got %+v, want only this process", list)
	}
}
