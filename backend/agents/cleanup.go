package agents

import (
	"encoding/json"
	"os"
	"path/filepath"
	"runtime"
	"strings"

	"deskhand/backend/environ"
)

// CleanUp describes how an agent deletes stored conversations, and how Deskhand can prevent the deletion.
type CleanUp struct {
	Settings string   `json:"settings" doc:"Path of the person's settings file, below the home directory"`
	Setting  string   `json:"setting" doc:"Dotted name of the setting that is false when the agent deletes nothing"`
	Age      string   `json:"age" doc:"Age at which the agent deletes a conversation, in words"`
	Home     string   `json:"home,omitempty" doc:"Environment variable that replaces the home directory"`
	Dir      string   `json:"dir" doc:"Directory of the agent's conversations, below the home directory"`
	Files    string   `json:"files" doc:"Pattern of conversation files below dir. A file without a message beside a file with messages makes the agent delete both, so Deskhand removes the former"`
	Context  []string `json:"context" doc:"Beginnings of the messages that the agent itself puts into a file"`
}

// settings returns the path of the person's settings file in an environment.
func (u *CleanUp) settings(env []string) string {
	usual := "HOME"
	if runtime.GOOS == "windows" {
		usual = "USERPROFILE"
	}
	home := environ.Lookup(env, usual)
	if named := environ.Lookup(env, u.Home); u.Home != "" && named != "" {
		home = named
	}
	return filepath.Join(home, filepath.FromSlash(u.Settings))
}

// isOff reports whether a settings file turns the deletion off. A file that cannot be read, for example because of comments, does not.
func (u *CleanUp) isOff(file string) bool {
	data, err := os.ReadFile(file)
	if err != nil {
		return false
	}
	var value any
	if json.Unmarshal(data, &value) != nil {
		return false
	}
	for key := range strings.SplitSeq(u.Setting, ".") {
		fields, _ := value.(map[string]any) // nil when value is no object
		value = fields[key]
	}
	off, isBool := value.(bool)
	return isBool && !off
}

// cleanUp advises about an agent that deletes conversations by itself, and names the setting against that.
func (t *trial) cleanUp() {
	u := t.e.known.Quirks.CleanUp
	if u == nil {
		return
	}
	if file := u.settings(t.c.environment.With(t.e.env)); !u.isOff(file) {
		t.advise("cleanup", "setting", u.Setting, "file", file, "age", u.Age)
	}
}
