package session_test

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	"deskhand/backend/agenttest"
	"deskhand/backend/files"
	"deskhand/backend/host"
	"deskhand/backend/proxy"
	"deskhand/backend/session"
	"deskhand/backend/transcript"
)

type step = agenttest.Step

type answer struct {
	Result json.RawMessage `json:"result"`
	Error  *struct {
		Code    int    `json:"code"`
		Message string `json:"message"`
	} `json:"error"`
}

// askingDesk has an agent that takes the steps of its prompts. The sessions of the desk may reach the files in d.work, and none in the
// private directory beside it.
func askingDesk(t *testing.T, dir string, words ...string) *desk {
	t.Helper()
	return askingDeskWith(t, dir, 0, words...)
}

// askingDeskWith is askingDesk with another patience.
func askingDeskWith(t *testing.T, dir string, patience time.Duration, words ...string) *desk {
	t.Helper()
	agent := agenttest.Program(t)
	args, err := json.Marshal(append([]string{"asking-agent"}, words...))
	if err != nil {
		t.Fatal(err)
	}
	file := fmt.Sprintf(`{"agents":[{"id":"asking","name":"Asking","command":%q,"args":%s}]}`, agent, args)
	if err := os.WriteFile(filepath.Join(dir, "agents.json"), []byte(file), 0o600); err != nil {
		t.Fatal(err)
	}
	within := files.Within{Private: []string{filepath.Join(dir, "private"), "/proc"}}
	return openAs(t, dir, proxy.Config{}, session.Config{Patience: patience, Files: &host.Files{Open: within.Open, Write: within.Write, Directory: within.Directory}})
}

func (d *desk) asking(further ...string) string {
	d.t.Helper()
	s, err := d.Create(d.t.Context(), session.New{Agent: "asking", Cwd: d.work, Directories: further})
	if err != nil {
		d.t.Fatal(err)
	}
	return s.ID
}

// of returns a step that asks for an operation on the newest terminal.
func of(what string) step {
	return step{Ask: "terminal/" + what, Params: map[string]any{"terminalId": "$T"}}
}

// steps sends a prompt that has the agent take these steps, and returns the answers that the agent got.
func (d *desk) steps(id string, steps ...step) []answer {
	d.t.Helper()
	d.begin(id, steps...)
	tr := d.idle(id)
	last := tr.Items[len(tr.Items)-1]
	for i := len(tr.Items) - 1; last.Kind != "agent"; i-- {
		last = tr.Items[i]
	}
	var got []answer
	if err := json.Unmarshal([]byte(last.Text), &got); err != nil {
		d.t.Fatalf("the agent said %.300q: %v", last.Text, err)
	}
	return got
}

func (d *desk) begin(id string, steps ...step) {
	d.t.Helper()
	prompt, err := json.Marshal(steps)
	if err != nil {
		d.t.Fatal(err)
	}
	d.prompt(id, string(prompt))
}

func (d *desk) write(name, content string) string {
	d.t.Helper()
	path := filepath.Join(d.work, name)
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		d.t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(content), 0o640); err != nil {
		d.t.Fatal(err)
	}
	return path
}

func kinds(t session.Transcript, kind string) []transcript.Entry {
	var list []transcript.Entry
	for _, e := range t.Items {
		if e.Kind == kind {
			list = append(list, e)
		}
	}
	return list
}

func (d *desk) frames(id string, each func(dir string, data []byte)) {
	d.t.Helper()
	if err := d.Frames(d.t.Context(), id, each); err != nil {
		d.t.Fatal(err)
	}
}

// checkFrames checks every frame that was sent to the agent against the published schema, and returns the methods that it saw.
func (d *desk) checkFrames(t *testing.T, id string) (seen map[string]bool) {
	t.Helper()
	definition := acpSchema(t)
	asked := map[string]string{} // the agent's requests, by id
	seen = map[string]bool{}
	d.frames(id, func(dir string, data []byte) {
		var m wire
		if dir == "note" || json.Unmarshal(data, &m) != nil {
			return
		}
		if dir == "in" {
			if m.Method != "" && m.ID != nil {
				asked[string(m.ID)] = m.Method
			}
			return
		}
		method, kind, value := m.Method, "Notification", m.Params
		switch {
		case m.Version != "2.0":
			t.Errorf("no JSON-RPC 2.0: %s", data)
		case m.Method != "" && m.ID != nil:
			kind = "Request"
		case m.Method == "" && m.Error != nil:
			return
		case m.Method == "":
			method, kind, value = asked[string(m.ID)], "Response", m.Result
		}
		seen[method+" "+kind] = true
		if schema := definition(method, kind); schema == nil {
			t.Errorf("%s %s is not in the schema: %s", method, kind, data)
		} else if err := schema.Validate(value); err != nil {
			t.Errorf("%s %s against the schema: got %v, want it valid: %s", method, kind, err, data)
		}
	})
	return seen
}
