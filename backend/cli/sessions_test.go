package cli_test

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"deskhand/backend/feed"
	"deskhand/backend/session"
)

func TestSessionsAreListedShownFoundAndExported(t *testing.T) {
	t.Parallel()
	dir, work := t.TempDir(), t.TempDir()
	if _, stderr, code := run(t, dir, "prompt", "--agent", "mock", "--dir", work, "echo the quick zeppelin"); code != 0 {
		t.Fatal(code, stderr)
	}
	list, _, code := run(t, dir, "sessions")
	if code != 0 || !strings.Contains(list, "echo the quick zeppelin") || !strings.Contains(list, "asleep") {
		t.Errorf("deskhand sessions: want exit code 0, list with \"echo the quick zeppelin\" and list with \"asleep\", got exit code %d\nlist %s", code, list)
	}
	raw, _, _ := run(t, dir, "sessions", "list", "--json")
	var page session.Page[session.Session]
	if err := json.Unmarshal([]byte(raw), &page); err != nil || len(page.Items) != 1 {
		t.Fatalf("Unmarshal: want no error and 1 in page.Items, got error %v\nraw %s", err, raw)
	}
	id := page.Items[0].ID
	for _, name := range []string{id, id[:14], "last"} {
		if text, stderr, code := run(t, dir, "sessions", "show", name); code != 0 || strings.Count(text, "the quick zeppelin") != 3 { // the title, the prompt and the answer
			t.Errorf("%s: deskhand sessions show NAME: want exit code 0 and 3 times \"the quick zeppelin\" in text, got exit code %d\nstderr %s\ntext %s", name, code, stderr, text)
		}
	}
	if text, stderr, code := run(t, dir, "sessions", "search", "zepp"); code != 0 || strings.Count(text, "the quick zeppelin") != 3 || !strings.Contains(text, id) {
		t.Errorf("deskhand sessions search zepp: want exit code 0, 3 times \"the quick zeppelin\" in text and text with %v, got exit code %d\nstderr %s\ntext %s", id, code, stderr, text)
	}
	for without, found := range map[string]bool{"-dirigible": true, "-quick": false} {
		if text, stderr, code := run(t, dir, "sessions", "search", "--limit", "3", "--", "zeppelin", without); code != 0 || strings.Contains(text, id) != found {
			t.Errorf("%s: deskhand sessions search --limit 3 -- zeppelin WITHOUT: want exit code 0 and strings.Contains(text, id) %v, got exit code %d\nstderr %s\ntext %s", without, found, code, stderr, text)
		}
	}
	if text, stderr, code := run(t, dir, "sessions", "search", "dirigible"); code != 0 || text != "" || !strings.Contains(stderr, "Nothing was found") {
		t.Errorf("deskhand sessions search dirigible: want exit code 0, text \"\" and stderr with \"Nothing was found\", got exit code %d\nstderr %s\ntext %s", code, stderr, text)
	}
	now := time.Now()
	today, tomorrow := now.Format("2006-01-02"), now.AddDate(0, 0, 1).Format("2006-01-02")
	for flags, found := range map[string]bool{"--to " + today: true, "--from " + tomorrow: false, "--dir " + work: true, "--dir " + work + " --from " + tomorrow: false} {
		text, stderr, code := run(t, dir, append([]string{"sessions", "search", "zepp"}, strings.Fields(flags)...)...)
		if code != 0 || strings.Contains(text, id) != found {
			t.Errorf("%s: want exit code 0 and strings.Contains(text, id) %v, got exit code %d\nstderr %s\ntext %s", flags, found, code, stderr, text)
		}
	}
	if text, stderr, code := run(t, dir, "sessions", "search", "zepp", "--dir", filepath.Join(work, "none")); code != 2 || text != "" || !strings.Contains(stderr, "no conversation works in") {
		t.Errorf(`deskhand sessions search zepp --dir: got exit code %d, text %s, stderr %s, want exit code 2, text "" and stderr with "no conversation works in"`, code, text, stderr)
	}
	file := filepath.Join(work, "out.json")
	if _, stderr, code := run(t, dir, "sessions", "export", "last", "--format", "json", "-o", file); code != 0 {
		t.Errorf("deskhand sessions export last --format json -o FILE: got exit code %d, stderr %s, want exit code 0", code, stderr)
	}
	data, err := os.ReadFile(file)
	if err != nil || !json.Valid(data) {
		t.Errorf("ReadFile: want no error and json.Valid(data), got error %v\ndata %s", err, data)
	}
	for name, args := range map[string][]string{
		"a file that is there": {"sessions", "export", "last", "-o", file},
		"no such conversation": {"sessions", "show", "ffff"},
		"nothing to look for":  {"sessions", "search", "-"},
		"no day":               {"sessions", "search", "zepp", "--from", "2026-02-30"},
		"no such directory":    {"sessions", "export", "last", "-o", filepath.Join(work, "none", "x")},
		"a whole id of none":   {"sessions", "show", "00000000-0000-7000-8000-000000000000"},
	} {
		if text, stderr, code := run(t, dir, args...); code != 2 || text != "" {
			t.Errorf("%s: want exit code 2 and text \"\", got exit code %d\ntext %s\nstderr %s", name, code, text, stderr)
		}
	}
	if again, err := os.ReadFile(file); err != nil || string(again) != string(data) {
		t.Errorf("file that was there: got %q, %v; want it as it was", again, err)
	}
	if left, err := filepath.Glob(filepath.Join(work, ".deskhand-export-*")); err != nil || len(left) > 0 {
		t.Errorf("temporary files: got %v, %v; want none", left, err)
	}
}

// TestSessionsExportOfDamagedSession: a damaged conversation is shown and exported as far as it can be read, with a warning.
func TestSessionsExportOfDamagedSession(t *testing.T) {
	t.Parallel()
	dir, work := t.TempDir(), t.TempDir()
	if _, stderr, code := run(t, dir, "prompt", "--agent", "mock", "--dir", work, "echo the quick zeppelin"); code != 0 {
		t.Fatal(code, stderr)
	}
	const warning = "Not all of this conversation can be read"
	if _, stderr, code := run(t, dir, "sessions", "show", "last"); code != 0 || strings.Contains(stderr, warning) {
		t.Errorf("deskhand sessions show of a whole session: got exit %d, stderr %s; want 0 and no warning", code, stderr)
	}
	harm(t, dir, `UPDATE frame SET encoding = 'zstd', payload = x'00' WHERE n = 2`)
	if text, stderr, code := run(t, dir, "sessions", "show", "last"); code != 0 || !strings.Contains(text, "the quick zeppelin") || !strings.Contains(stderr, warning) {
		t.Errorf("deskhand sessions show last: want exit code 0, text with \"the quick zeppelin\" and stderr with %v, got exit code %d\nstderr %s\ntext %s", warning, code, stderr, text)
	}
	file := filepath.Join(work, "out.json")
	if _, stderr, code := run(t, dir, "sessions", "export", "last", "--format", "json", "-o", file); code != 0 || !strings.Contains(stderr, warning) {
		t.Errorf("deskhand sessions export last --format json -o FILE: got exit code %d, stderr %s, want exit code 0 and stderr with %v", code, stderr, warning)
	}
	if data, err := os.ReadFile(file); err != nil || !json.Valid(data) || !strings.Contains(string(data), `"damage": "frame 2: `) {
		t.Errorf("ReadFile: want no error, json.Valid(data) and data with \"\\\"damage\\\": \\\"frame 2: \", got error %v\ndata %s", err, data)
	}
}

func TestTailShowsWhatIsSaid(t *testing.T) {
	t.Parallel()
	dir, work := t.TempDir(), t.TempDir()
	if _, stderr, code := run(t, dir, "tail"); code != 1 || !strings.Contains(stderr, "no Deskhand runs") {
		t.Errorf(`deskhand tail: got exit code %d, stderr %s, want exit code 1 and stderr with "no Deskhand runs"`, code, stderr)
	}
	server(t, dir)
	c := onSocket(t, dir)
	s := c.begin(work, "echo first")
	c.watch("end of the turn", func(e feed.Event) bool {
		return e.Type == "turn.upsert" && decode[session.Turn](e).State == "done"
	})
	p := start(t, dir, "tail")
	for !strings.Contains(p.stderr.String(), "Ctrl-C ends this") {
		select {
		case <-time.After(10 * time.Millisecond):
		case <-t.Context().Done():
			t.Fatal(p.stderr)
		}
	}
	c.post("/client/sessions/"+s.ID+"/prompt", map[string]string{"message": "echo second words"}, nil)
	for said := ""; !strings.Contains(said, "second words"); {
		line, err := p.stdout.ReadString('\n')
		if said += line; err != nil || strings.Contains(said, "first") {
			t.Fatalf(`got said %q, error %v, want no error and said without "first"`, said, err)
		}
	}
	other := start(t, dir, "tail", s.ID)
	other.says("Ctrl-C ends this")
	_ = p.Process.Signal(os.Interrupt)
	if out, code := p.end(); code != 0 {
		t.Errorf("got exit code %d, stdout %s, stderr %s, want exit code 0", code, out, p.stderr)
	}
	if text := p.stderr.String(); !strings.Contains(text, "> echo second words") {
		t.Error(text)
	}
	c.do("DELETE", "/client/sessions/"+s.ID, nil)
	other.says("was deleted")
	if out, code := other.end(); code != 0 {
		t.Errorf("got exit code %d, stdout %s, other.stderr %s, want exit code 0", code, out, other.stderr)
	}
	if _, stderr, code := run(t, dir, "tail", s.ID); code != 2 || !strings.Contains(stderr, "no conversation") {
		t.Errorf("deskhand tail of a deleted session: got exit %d, stderr %s; want 2 and that there is none", code, stderr)
	}
}

// TestSessionsSearchWaitsForIndex: a search finds words said a moment ago, even behind a long backlog of the index.
func TestSessionsSearchWaitsForIndex(t *testing.T) {
	dir, work := t.TempDir(), t.TempDir()
	if _, stderr, code := run(t, dir, "prompt", "--agent", "mock", "--dir", work, "echo the quick zeppelin"); code != 0 {
		t.Fatal(code, stderr)
	}
	change(t, dir, "DELETE FROM words", "DELETE FROM unsearched", "INSERT INTO unsearched SELECT rowid FROM entry",
		// The index takes the newest entries first, and a deleted entry costs as much as a stored entry.
		"WITH RECURSIVE n(i) AS (SELECT 1000000 UNION ALL SELECT i+1 FROM n WHERE i < 1005000) INSERT INTO unsearched SELECT i FROM n")
	text, stderr, code := run(t, dir, "sessions", "search", "zepp")
	if code != 0 || !strings.Contains(text, "the quick zeppelin") || strings.Contains(stderr, "not in the index yet") {
		t.Errorf("deskhand sessions search: got exit %d\n%s%s\nwant 0 and the hit, with the index complete", code, text, stderr)
	}
}
