package session_test

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"deskhand/backend/agents"
	"deskhand/backend/lifecycle"
	"deskhand/backend/proxy"
	"deskhand/backend/roster"
	"deskhand/backend/session"
	"deskhand/backend/store"
	"deskhand/backend/storetest"
)

// packed is an agent in a shell. packed answers a prompt with its version, once there is a file "go" beside agents.json.
const packed = `#!/bin/sh
while read -r line; do
  id=${line#*'"id":'}; id=${id%%%%[,\}]*}
  say() { echo '{"jsonrpc":"2.0","id":'$id',"result":'"$1"'}'; }
  case $line in
  *'"initialize"'*) say '{"protocolVersion":1}' ;;
  *'"session/new"'*) say '{"sessionId":"s"}' ;;
  *'"session/prompt"'*)
    while [ ! -e %[2]s/go ]; do sleep 0.05; done
    echo '{"jsonrpc":"2.0","method":"session/update","params":{"sessionId":"s","update":{"sessionUpdate":"agent_message_chunk","content":{"type":"text","text":"I am %[1]s"}}}}'
    say '{"stopReason":"end_turn"}' ;;
  esac
done
`

func packedArchive(t *testing.T, version, dir string) []byte {
	t.Helper()
	text := fmt.Sprintf(packed, version, dir)
	var buf bytes.Buffer
	zipped := gzip.NewWriter(&buf)
	archive := tar.NewWriter(zipped)
	err := archive.WriteHeader(&tar.Header{Name: "agent", Mode: 0o755, Size: int64(len(text)), Typeflag: tar.TypeReg})
	if err == nil {
		_, err = archive.Write([]byte(text))
	}
	if err := errors.Join(err, archive.Close(), zipped.Close()); err != nil {
		t.Fatal(err)
	}
	return buf.Bytes()
}

// openInstalling is a desk whose agents are installed into its directory.
func openInstalling(t *testing.T, dir string) *desk {
	t.Helper()
	db := storetest.Open(t, dir)
	set, err := proxy.Open(proxy.Config{})
	if err != nil {
		t.Fatal(err)
	}
	catalogue := agents.Open(agents.Config{File: filepath.Join(dir, "agents.json"), Dir: filepath.Join(dir, "agents"), WriteFile: store.WriteFile})
	people := roster.New(roster.Deps{Catalogue: catalogue})
	c, err := session.Open(t.Context(), session.Config{Store: db, Agents: catalogue, Proxy: set, Version: "test", Roster: people})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := errors.Join(c.Close(), catalogue.Close(), set.Close(), db.Close()); err != nil {
			t.Error(err)
		}
	})
	return &desk{Client: c, roster: people, t: t, dir: dir, db: db, work: t.TempDir()}
}

// TestAgentUpdateDuringTurn: an agent is updated while a turn runs, the turn goes on in its version, and no file of that version is removed
// before the turn has ended.
func TestAgentUpdateDuringTurn(t *testing.T) {
	t.Parallel()
	if runtime.GOOS == "windows" {
		t.Skip("the agent is a script of a shell")
	}
	dir := t.TempDir()
	archives := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, _ = w.Write(packedArchive(t, strings.TrimSuffix(strings.TrimPrefix(r.URL.Path, "/"), ".tgz"), dir))
	}))
	defer archives.Close()
	d := openInstalling(t, dir)
	machine := runtime.GOOS + "-" + map[string]string{"amd64": "x86_64", "arm64": "aarch64"}[runtime.GOARCH]
	install := func(version string) agents.Agent {
		t.Helper()
		data, err := json.Marshal(map[string]any{"agents": []any{map[string]any{
			"id": "packed", "version": version, "distribution": map[string]any{"binary": map[string]any{
				machine: map[string]any{"archive": archives.URL + "/" + version + ".tgz", "cmd": "agent"},
			}},
		}}})
		if err == nil {
			err = os.WriteFile(filepath.Join(dir, "agents.json"), data, 0o600)
		}
		if err != nil {
			t.Fatal(err)
		}
		if _, err := d.roster.Install("packed", ""); err != nil {
			t.Fatal(err)
		}
		var now agents.Agent
		d.until("end of the installation", func() bool {
			list, err := d.roster.List(t.Context(), true, false)
			if err != nil {
				t.Fatal(err)
			}
			for _, a := range list {
				if a.ID == "packed" {
					now = a
				}
			}
			return now.Installing == nil
		})
		if now.Version != version || now.Failure != nil {
			t.Fatalf("agent after the installation: got %+v, failure %+v; want version %s", now, now.Failure, version)
		}
		return now
	}
	begin := func() session.Session {
		t.Helper()
		s, err := d.Create(t.Context(), session.New{Agent: "packed", Cwd: d.work})
		if err != nil {
			t.Fatal(err)
		}
		return s
	}
	install("1.0.0")
	old := begin()
	d.until("ready session", func() bool { return d.get(old.ID).Phase == lifecycle.Ready })
	d.prompt(old.ID, "who are you?")
	d.until("running turn", func() bool { return d.get(old.ID).Phase == lifecycle.Working })

	if a := install("2.0.0"); a.Previous != "1.0.0" {
		t.Errorf("agent after an update in a turn: got %+v, want 1.0.0 as the previous version", a)
	}
	install("3.0.0") // 1.0.0 is no longer the version before, and would be removed
	if _, err := os.Stat(filepath.Join(dir, "agents", "packed", "1.0.0", "files", "agent")); err != nil {
		t.Errorf("what runs was removed: %v", err)
	}
	refused(t, d.roster.Uninstall("packed"), "agent.in_use")
	if s := d.get(old.ID); s.Phase != lifecycle.Working {
		t.Errorf("the turn is disturbed: %+v", s)
	}
	if err := os.WriteFile(filepath.Join(dir, "go"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if text := textOf(d.idle(old.ID), "agent"); !strings.Contains(text, "I am 1.0.0") {
		t.Errorf("agent's text: got %q, want the version of its start, 1.0.0", text)
	}

	next := begin()
	d.prompt(next.ID, "who are you?")
	if text := textOf(d.idle(next.ID), "agent"); !strings.Contains(text, "I am 3.0.0") {
		t.Errorf("agent's text: got %q, want the newest version, 3.0.0", text)
	}
}
