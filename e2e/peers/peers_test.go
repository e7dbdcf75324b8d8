//go:build e2e && unix

package peers

import (
	"context"
	"encoding/json"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"deskhand/backend/agents"
	"deskhand/backend/feed"
	"deskhand/backend/files"
	"deskhand/backend/host"
	"deskhand/backend/lifecycle"
	"deskhand/backend/proxy"
	"deskhand/backend/requests"
	"deskhand/backend/session"
	"deskhand/backend/store"
	"deskhand/backend/vault"
)

// fixture is a client of which an agent of the given command is "peer".
type fixture struct {
	*session.Client
	t    *testing.T
	work string
}

func open(t *testing.T, command string, args ...string) *fixture {
	t.Helper()
	dir := t.TempDir()
	work := filepath.Join(dir, "work")
	if err := os.MkdirAll(work, 0o700); err != nil {
		t.Fatal(err)
	}
	definition, err := json.Marshal(map[string]any{"agents": []any{map[string]any{"id": "peer", "name": "Peer", "command": command, "args": args}}})
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, "agents.json"), definition, 0o600); err != nil {
		t.Fatal(err)
	}
	db, err := store.Open(t.Context(), dir)
	if err != nil {
		t.Fatal(err)
	}
	set, err := proxy.Open(proxy.Config{})
	if err != nil {
		t.Fatal(err)
	}
	catalogue := agents.Open(agents.Config{Self: command, File: filepath.Join(dir, "agents.json"), Vault: vault.Open(vault.Config{File: filepath.Join(dir, "logins.json"), WriteFile: store.WriteFile}), WriteFile: store.WriteFile})
	within := files.Within{}
	c, err := session.Open(t.Context(), session.Config{
		Store: db, Agents: catalogue, Proxy: set, Version: "test", Replace: files.Replace,
		Files: &host.Files{Open: within.Open, Write: within.Write, Directory: within.Directory},
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := errors.Join(c.Close(), catalogue.Close(), set.Close(), db.Close()); err != nil {
			t.Error(err)
		}
	})
	return &fixture{Client: c, t: t, work: work}
}

func (d *fixture) start() string {
	d.t.Helper()
	s, err := d.Create(d.t.Context(), session.New{Agent: "peer", Cwd: d.work})
	if err != nil {
		d.t.Fatal(err)
	}
	return s.ID
}

func (d *fixture) until(what string, holds func() bool) {
	d.t.Helper()
	ctx, cancel := context.WithTimeout(d.t.Context(), 30*time.Second)
	defer cancel()
	q := feed.Query{Gen: d.Feed().Gen(), Wait: 200 * time.Millisecond}
	for !holds() {
		batch, err := d.Feed().After(ctx, q)
		if err != nil || ctx.Err() != nil {
			d.t.Fatalf("no %s", what)
		}
		q.After = batch.Seq
	}
}

func (d *fixture) prompt(id, text string) {
	d.t.Helper()
	if _, err := d.Prompt(d.t.Context(), id, text); err != nil {
		d.t.Fatal(err)
	}
}

// end waits for the end of the turn, and returns the reason of its end and the transcript.
func (d *fixture) end(id string) (reason string, tr session.Transcript) {
	d.t.Helper()
	d.until("end of the turn", func() bool {
		s, err := d.Get(d.t.Context(), id)
		return err == nil && s.Turn == nil
	})
	tr, err := d.Transcripts().Entries(d.t.Context(), id, 0, 1000)
	if err != nil {
		d.t.Fatal(err)
	}
	return tr.Turns[len(tr.Turns)-1].StopReason, tr
}

func (d *fixture) permit(id, option string) {
	d.t.Helper()
	var asked requests.Request
	d.until("permission", func() bool {
		list, err := d.Requests().Waiting(d.t.Context())
		if err == nil && len(list) > 0 {
			asked = list[0]
		}
		return len(list) > 0
	})
	if err := d.Answer(d.t.Context(), asked.ID, requests.Answer{OptionID: option}, "window"); err != nil {
		d.t.Fatal(err)
	}
	_ = id
}

func said(tr session.Transcript) string {
	var text strings.Builder
	for _, e := range tr.Items {
		if e.Kind == "agent" {
			text.WriteString(e.Text + "\n")
		}
		if e.Kind == "raw" {
			text.WriteString("RAW " + string(e.Raw))
		}
	}
	return text.String()
}

func build(t *testing.T, pkg string) string {
	t.Helper()
	bin := filepath.Join(t.TempDir(), "peer")
	cmd := exec.Command("go", "build", "-C", "golang", "-o", bin, pkg)
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("go build %s: %v\n%s", pkg, err, out)
	}
	return bin
}

// absolute is a file of ours, which node is given.
func absolute(t *testing.T, name string) string {
	t.Helper()
	path, err := filepath.Abs(name)
	if err == nil {
		_, err = os.Stat(path)
	}
	if err != nil {
		t.Fatal("its packages are not installed: ", err)
	}
	return path
}

func node(t *testing.T) string {
	t.Helper()
	path, err := exec.LookPath("node")
	if err != nil {
		t.Fatal(err)
	}
	return path
}

func TestAgentsOnTheLibraries(t *testing.T) {
	for name, start := range map[string]func(t *testing.T) *fixture{
		"typescript": func(t *testing.T) *fixture {
			t.Helper()
			absolute(t, "node/node_modules/@agentclientprotocol/sdk")
			return open(t, node(t), absolute(t, "node/agent.mjs"))
		},
		"go": func(t *testing.T) *fixture {
			t.Helper()
			return open(t, build(t, "."))
		},
	} {
		t.Run(name, func(t *testing.T) {
			d := start(t)
			id := d.start()
			d.prompt(id, "files")
			reason, tr := d.end(id)
			if reason != "end_turn" || !strings.Contains(said(tr), `"content":"two\n"`) || !strings.Contains(said(tr), `"missing":-32002`) {
				t.Errorf("files: %s %s", reason, said(tr))
			}
			d.prompt(id, "program")
			reason, tr = d.end(id)
			for _, want := range []string{`"output":"from a program\n"`, `"truncated":false`, `"exit":4`, `"signal":"SIGTERM"`} {
				if reason != "end_turn" || !strings.Contains(said(tr), want) {
					t.Errorf("program: %s %s, want %s", reason, said(tr), want)
				}
			}
			d.prompt(id, "permission")
			d.permit(id, "yes")
			if reason, tr = d.end(id); reason != "end_turn" || !strings.Contains(said(tr), `"yes"`) {
				t.Errorf("permission: %s %s", reason, said(tr))
			}
			d.prompt(id, "wait")
			d.until("work", func() bool {
				s, err := d.Get(t.Context(), id)
				return err == nil && s.Phase == lifecycle.Working
			})
			if err := d.Cancel(t.Context(), id); err != nil {
				t.Fatal(err)
			}
			if reason, _ = d.end(id); reason != "cancelled" {
				t.Errorf("cancel: %s", reason)
			}
			shown := map[string]int{}
			for _, e := range tr.Items {
				shown[e.Kind]++
			}
			if shown["file"] != 1 || shown["terminal"] != 2 || shown["raw"] != 0 {
				t.Errorf("shown: %v", shown)
			}
		})
	}
}

// The examples that come with the libraries, as they are: text, tool calls, a permission.
func TestExamplesOfTheLibraries(t *testing.T) {
	for name, start := range map[string]func(t *testing.T) *fixture{
		"typescript": func(t *testing.T) *fixture {
			t.Helper()
			return open(t, node(t), absolute(t, "../sdk/node_modules/@agentclientprotocol/sdk/dist/examples/agent.js"))
		},
		"go": func(t *testing.T) *fixture {
			t.Helper()
			return open(t, build(t, "github.com/coder/acp-go-sdk/example/agent"))
		},
	} {
		t.Run(name, func(t *testing.T) {
			d := start(t)
			id := d.start()
			d.prompt(id, "hello")
			d.permit(id, "allow")
			reason, tr := d.end(id)
			if reason != "end_turn" || strings.Contains(said(tr), "RAW") || len(said(tr)) < 20 {
				t.Errorf(`got reason %s, said(tr) %s, want reason "end_turn", said(tr) without "RAW" and at least 20 in said(tr)`, reason, said(tr))
			}
			d.prompt(id, "again")
			d.until("work", func() bool {
				s, err := d.Get(t.Context(), id)
				return err == nil && s.Phase == lifecycle.Working
			})
			if err := d.Cancel(t.Context(), id); err != nil {
				t.Fatal(err)
			}
			if reason, _ = d.end(id); reason != "cancelled" {
				t.Errorf("cancel: %s", reason)
			}
		})
	}
}
