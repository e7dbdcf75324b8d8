package cli_test

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

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
		t.Errorf("%d\n%s", code, list)
	}
	raw, _, _ := run(t, dir, "sessions", "list", "--json")
	var page session.Page[session.Session]
	if err := json.Unmarshal([]byte(raw), &page); err != nil || len(page.Items) != 1 {
		t.Fatalf("%v\n%s", err, raw)
	}
	id := page.Items[0].ID
	for _, name := range []string{id, id[:14], "last"} {
		if text, stderr, code := run(t, dir, "sessions", "show", name); code != 0 || strings.Count(text, "the quick zeppelin") != 3 { // title, prompt, answer
			t.Errorf("%s: %d %s\n%s", name, code, stderr, text)
		}
	}
	if text, stderr, code := run(t, dir, "sessions", "search", "zepp"); code != 0 || strings.Count(text, "the quick zeppelin") != 3 || !strings.Contains(text, id) {
		t.Errorf("%d %s\n%s", code, stderr, text)
	}
	for without, found := range map[string]bool{"-dirigible": true, "-quick": false} {
		if text, stderr, code := run(t, dir, "sessions", "search", "--limit", "3", "--", "zeppelin", without); code != 0 || strings.Contains(text, id) != found {
			t.Errorf("%s: %d %s\n%s", without, code, stderr, text)
		}
	}
	if text, stderr, code := run(t, dir, "sessions", "search", "dirigible"); code != 0 || text != "" || !strings.Contains(stderr, "Nothing was found") {
		t.Errorf("%d %s\n%s", code, stderr, text)
	}
	now := time.Now()
	today, tomorrow := now.Format("2006-01-02"), now.AddDate(0, 0, 1).Format("2006-01-02")
	for flags, found := range map[string]bool{"--to " + today: true, "--from " + tomorrow: false, "--dir " + work: true, "--dir " + work + " --from " + tomorrow: false} {
		text, stderr, code := run(t, dir, append([]string{"sessions", "search", "zepp"}, strings.Fields(flags)...)...)
		if code != 0 || strings.Contains(text, id) != found {
			t.Errorf("%s: %d %s\n%s", flags, code, stderr, text)
		}
	}
	if text, stderr, code := run(t, dir, "sessions", "search", "zepp", "--dir", filepath.Join(work, "none")); code != 2 || text != "" || !strings.Contains(stderr, "no conversation works in") {
		t.Errorf("%d %s%s", code, text, stderr)
	}
	file := filepath.Join(work, "out.json")
	if _, stderr, code := run(t, dir, "sessions", "export", "last", "--format", "json", "-o", file); code != 0 {
		t.Errorf("%d %s", code, stderr)
	}
	data, err := os.ReadFile(file)
	if err != nil || !json.Valid(data) {
		t.Errorf("%v\n%s", err, data)
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
			t.Errorf("%s: %d\n%s%s", name, code, text, stderr)
		}
	}
	if again, err := os.ReadFile(file); err != nil || string(again) != string(data) {
		t.Errorf("the file that was there is another: %v", err)
	}
	if left, err := filepath.Glob(filepath.Join(work, ".deskhand-export-*")); err != nil || len(left) > 0 {
		t.Errorf("%v are left, %v", left, err)
	}
}

// One that is damaged is shown and exported as far as it can be read, with a warning.
func TestADamagedSessionIsExported(t *testing.T) {
	t.Parallel()
	dir, work := t.TempDir(), t.TempDir()
	if _, stderr, code := run(t, dir, "prompt", "--agent", "mock", "--dir", work, "echo the quick zeppelin"); code != 0 {
		t.Fatal(code, stderr)
	}
	const warning = "Not all of this conversation can be read"
	if _, stderr, code := run(t, dir, "sessions", "show", "last"); code != 0 || strings.Contains(stderr, warning) {
		t.Errorf("while it is whole: %d %s", code, stderr)
	}
	harm(t, dir, `UPDATE frame SET encoding = 'zstd', payload = x'00' WHERE n = 2`)
	if text, stderr, code := run(t, dir, "sessions", "show", "last"); code != 0 || !strings.Contains(text, "the quick zeppelin") || !strings.Contains(stderr, warning) {
		t.Errorf("%d %s\n%s", code, stderr, text)
	}
	file := filepath.Join(work, "out.json")
	if _, stderr, code := run(t, dir, "sessions", "export", "last", "--format", "json", "-o", file); code != 0 || !strings.Contains(stderr, warning) {
		t.Errorf("%d %s", code, stderr)
	}
	if data, err := os.ReadFile(file); err != nil || !json.Valid(data) || !strings.Contains(string(data), `"damage": "frame 2: `) {
		t.Errorf("%v\n%s", err, data)
	}
}

func TestTailShowsWhatIsSaid(t *testing.T) {
	t.Parallel()
	dir, work := t.TempDir(), t.TempDir()
	if _, stderr, code := run(t, dir, "tail"); code != 1 || !strings.Contains(stderr, "no Deskhand runs") {
		t.Errorf("%d %s", code, stderr)
	}
	server(t, dir)
	c := onSocket(t, dir)
	s := c.begin(work, "echo first")
	c.watch("end of the turn", func(e session.Event) bool {
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
			t.Fatalf("%q, %v", said, err)
		}
	}
	other := start(t, dir, "tail", s.ID)
	other.says("Ctrl-C ends this")
	_ = p.Process.Signal(os.Interrupt)
	if out, code := p.end(); code != 0 {
		t.Errorf("%d %s %s", code, out, p.stderr)
	}
	if text := p.stderr.String(); !strings.Contains(text, "> echo second words") {
		t.Error(text)
	}
	c.do("DELETE", "/client/sessions/"+s.ID, nil)
	other.says("was deleted")
	if out, code := other.end(); code != 0 {
		t.Errorf("%d %s %s", code, out, other.stderr)
	}
	if _, stderr, code := run(t, dir, "tail", s.ID); code != 2 || !strings.Contains(stderr, "no conversation") {
		t.Errorf("one that is not there: %d %s", code, stderr)
	}
}

// What was said a moment ago is found, also when much is put into the index before it.
func TestASearchWaitsForTheIndex(t *testing.T) {
	dir, work := t.TempDir(), t.TempDir()
	if _, stderr, code := run(t, dir, "prompt", "--agent", "mock", "--dir", work, "echo the quick zeppelin"); code != 0 {
		t.Fatal(code, stderr)
	}
	change(t, dir, "DELETE FROM words", "DELETE FROM unsearched", "INSERT INTO unsearched SELECT rowid FROM entry",
		// The newest are first, and an entry that was deleted meanwhile costs as much as one that was not.
		"WITH RECURSIVE n(i) AS (SELECT 1000000 UNION ALL SELECT i+1 FROM n WHERE i < 1005000) INSERT INTO unsearched SELECT i FROM n")
	text, stderr, code := run(t, dir, "sessions", "search", "zepp")
	if code != 0 || !strings.Contains(text, "the quick zeppelin") || strings.Contains(stderr, "not in the index yet") {
		t.Errorf("exit %d\n%s%s", code, text, stderr)
	}
}
