package agents

import (
	"encoding/json"
	"os"
	"path/filepath"
	"runtime"
	"strings"
)

// CleanUp describes how an agent deletes stored conversations, and how Deskhand can prevent the deletion.
type CleanUp struct {
	Settings string   `json:"settings" doc:"The person's file of settings, below the home directory"`
	Setting  string   `json:"setting" doc:"The setting that is false where the agent deletes nothing, with dots"`
	Age      string   `json:"age" doc:"How old a conversation gets, in words"`
	Home     string   `json:"home,omitempty" doc:"The variable that stands for the home directory"`
	Dir      string   `json:"dir" doc:"Where the agent keeps conversations, below the home directory"`
	Files    string   `json:"files" doc:"A pattern of their files below dir. A file without a message beside one with messages has the agent delete both, and is removed"`
	Context  []string `json:"context" doc:"How the messages begin that the agent puts into a file itself"`
}

// settings returns the path of the person's settings file in an environment.
func (u *CleanUp) settings(environ []string) string {
	usual := "HOME"
	if runtime.GOOS == "windows" {
		usual = "USERPROFILE"
	}
	home := lookup(environ, usual)
	if named := lookup(environ, u.Home); u.Home != "" && named != "" {
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
	if file := u.settings(t.c.environ(t.e.env)); !u.isOff(file) {
		t.advise("cleanup", "setting", u.Setting, "file", file, "age", u.Age)
	}
}
