package httpapi_test

import (
	"encoding/json"
	"net/http"
	"os"
	"path/filepath"
	"testing"

	"deskhand/backend/settings"
)

func TestKeyboardOverHTTP(t *testing.T) {
	dir := t.TempDir()
	c := openSettings(t, filepath.Join(dir, "settings.json"))
	file := filepath.Join(dir, "keyboard.json")
	var k settings.Keyboard
	c.call("GET", "keyboard", "", http.StatusOK, &k)
	if k.Path != file || k.Version != "" || k.Bindings == nil || len(k.Bindings) != 0 {
		t.Errorf("keyboard: got %+v, want no bindings in %s", k, file)
	}
	c.call("PUT", "keyboard", `{"version":"","bindings":[{"keys":"Mod+Shift+X","command":"inbox"},{"keys":"Mod+I","command":null}]}`, http.StatusOK, &k)
	if len(k.Bindings) != 2 || *k.Bindings[0].Command != "inbox" || k.Bindings[1].Command != nil {
		t.Errorf("keyboard: got %+v, want inbox and an unbound key", k)
	}
	c.until(func(kind string, data []byte) bool {
		var told settings.Keyboard
		return kind == "keyboard.upsert" && json.Unmarshal(data, &told) == nil && told.Version == k.Version
	})
	c.refused("PUT", "keyboard", `{"version":"","bindings":[]}`, http.StatusConflict, "keyboard.changed")
	c.refused("PUT", "keyboard", `{"version":"","bindings":[{"keys":"","command":null}]}`, http.StatusBadRequest, "request.invalid")
	c.refused("PUT", "keyboard", `{"version":"","bindings":[{"keys":"F9"}]}`, http.StatusBadRequest, "request.invalid")

	if err := os.WriteFile(file, []byte("{\n oops"), 0o600); err != nil {
		t.Fatal(err)
	}
	// A watcher notices the change without a request.
	c.until(func(kind string, data []byte) bool {
		var told settings.Keyboard
		return kind == "keyboard.upsert" && json.Unmarshal(data, &told) == nil && told.Problem != ""
	})
	c.refused("PUT", "keyboard", `{"version":"`+k.Version+`","bindings":[]}`, http.StatusConflict, "keyboard.broken")
	if data, err := os.ReadFile(file); err != nil || string(data) != "{\n oops" {
		t.Errorf("file: got %q, %v, want the broken file unchanged", data, err)
	}
}
