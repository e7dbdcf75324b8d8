package cli_test

import (
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"deskhand/backend"
	"deskhand/backend/datadir"
	"deskhand/backend/salvage"
	"deskhand/backend/store"
	"deskhand/backend/testkit"
)

// harmed is a database of data with its WAL log after one kind of damage.
type harmed struct {
	name string
	do   func(data, log []byte, rng *rand.Rand) (newData, newLog []byte)
}

const pageOf = 4096

// ways are the kinds of damage that the test tries.
func ways(pages int) (list []harmed) {
	add := func(name string, do func(data, log []byte, rng *rand.Rand) ([]byte, []byte)) {
		list = append(list, harmed{name, do})
	}
	add("nothing at all", func(data, log []byte, _ *rand.Rand) ([]byte, []byte) { return data, log })
	add("an empty file", func(_, log []byte, _ *rand.Rand) ([]byte, []byte) { return nil, log })
	add("no log", func(data, _ []byte, _ *rand.Rand) ([]byte, []byte) { return data, nil })
	add("random bytes", func(data, log []byte, rng *rand.Rand) ([]byte, []byte) { return noise(len(data), rng), log })
	for i := range 3 {
		add(fmt.Sprintf("the end cut off %d", i), func(data, log []byte, rng *rand.Rand) ([]byte, []byte) { return data[:rng.IntN(len(data))], log })
		add(fmt.Sprintf("the log cut off %d", i), func(data, log []byte, rng *rand.Rand) ([]byte, []byte) { return data, log[:rng.IntN(len(log)+1)] })
		add(fmt.Sprintf("a bit of the log %d", i), func(data, log []byte, rng *rand.Rand) ([]byte, []byte) {
			if len(log) > 0 {
				log[rng.IntN(len(log))] ^= 1 << rng.IntN(8)
			}
			return data, log
		})
	}
	for page := range pages {
		add(fmt.Sprintf("page %d of zeros", page+1), func(data, _ []byte, _ *rand.Rand) ([]byte, []byte) {
			clear(data[page*pageOf : (page+1)*pageOf])
			return data, nil
		})
		add(fmt.Sprintf("a bit in the head of page %d", page+1), func(data, _ []byte, rng *rand.Rand) ([]byte, []byte) {
			data[page*pageOf+rng.IntN(12)] ^= 1 << rng.IntN(8)
			return data, nil
		})
		add(fmt.Sprintf("bits in page %d", page+1), func(data, _ []byte, rng *rand.Rand) ([]byte, []byte) {
			for range 20 {
				data[page*pageOf+rng.IntN(pageOf)] ^= 1 << rng.IntN(8)
			}
			return data, nil
		})
	}
	return list
}

func noise(length int, rng *rand.Rand) []byte {
	data := make([]byte, length)
	for i := range data {
		data[i] = byte(rng.Uint32())
	}
	return data
}

// asked calls the routes that read stored data, and returns the ids of the listed conversations.
func asked(t *testing.T, name string, b *backend.Backend) (ids []string) {
	t.Helper()
	get := func(path string) []byte {
		w := httptest.NewRecorder()
		b.Window().ServeHTTP(w, httptest.NewRequest(http.MethodGet, "/client/"+path, nil))
		if w.Code >= 500 && (w.Code != http.StatusServiceUnavailable || !strings.Contains(w.Body.String(), "verify --salvage")) {
			t.Errorf("%s: GET %s: got %d %s; want an answer, or 503 that names verify --salvage", name, path, w.Code, w.Body)
		}
		return w.Body.Bytes()
	}
	var list struct{ Items []struct{ ID string } }
	_ = json.Unmarshal(get("sessions"), &list) // a refusal has no items
	for _, s := range list.Items {
		ids = append(ids, s.ID)
		get("sessions/" + url.PathEscape(s.ID) + "/entries")
	}
	get("search?q=zeppelin")
	return ids
}

// TestDamagedDatabaseIsShownOrRefusedWithWayOn: a damaged database is either shown or refused with advice, and its readable part can be
// salvaged into a sound database.
func TestDamagedDatabaseIsShownOrRefusedWithWayOn(t *testing.T) {
	t.Parallel()
	from := t.TempDir()
	for i := range 3 {
		if _, stderr, code := run(t, from, "prompt", "--agent", "mock", "--dir", t.TempDir(), fmt.Sprintf("echo the quick zeppelin %d %s", i, strings.Repeat("word ", 400))); code != 0 {
			t.Fatal(code, stderr)
		}
	}
	db, err := store.Open(t.Context(), from)
	if err != nil {
		t.Fatal(err)
	}
	data, err := os.ReadFile(filepath.Join(from, "deskhand.db"))
	if err != nil {
		t.Fatal(err)
	}
	log, err := os.ReadFile(filepath.Join(from, "deskhand.db-wal"))
	if err != nil {
		t.Fatal(err)
	}
	if err := db.Close(); err != nil {
		t.Fatal(err)
	}
	opened := func(dir string) (*backend.Backend, error) {
		places, err := datadir.Find(dir)
		if err != nil {
			t.Fatal(err)
		}
		return backend.Open(t.Context(), backend.Config{Places: places, Version: "1.0.0", Kind: "command", Self: testkit.Deskhand(t), Logger: slog.New(slog.DiscardHandler)})
	}
	all := ways(len(data) / pageOf)
	const few = 5 // pages, unless the test is told to try every page
	refused, shown := 0, 0
	for i, way := range all {
		if strings.Contains(way.name, "page") && i%rounds(t, few) != 0 && os.Getenv("DESKHAND_CRASH_ROUNDS") == "" {
			continue
		}
		dir := t.TempDir()
		newData, newLog := way.do(slices.Clone(data), slices.Clone(log), rand.New(rand.NewPCG(uint64(i), 1))) //nolint:gosec // the same damage on every run
		for name, bytes := range map[string][]byte{"deskhand.db": newData, "deskhand.db-wal": newLog, "written-by": []byte("1.0.0\n")} {
			if bytes != nil || name == "deskhand.db" {
				if err := os.WriteFile(filepath.Join(dir, name), bytes, 0o600); err != nil {
					t.Fatal(err)
				}
			}
		}
		b, err := opened(dir)
		if err == nil {
			shown++
			asked(t, way.name, b)
			if err := b.Close(); err != nil && !store.Corrupt(err) {
				t.Errorf("%s: Close: %v", way.name, err)
			}
		} else if refused++; !strings.Contains(err.Error(), "verify --salvage") {
			t.Errorf("%s: got a start that is refused with %q, want one that names verify --salvage", way.name, err)
		}
		to := filepath.Join(t.TempDir(), "new")
		r, err := salvage.Run(t.Context(), dir, to)
		if err != nil {
			t.Errorf("%s: salvage: %v", way.name, err)
			continue
		}
		if b, err = opened(to); err != nil {
			t.Errorf("%s: got a salvaged database that does not open: %v", way.name, err)
			continue
		}
		ids := asked(t, way.name+", salvaged", b)
		if len(ids) < 3 && strings.HasPrefix(way.name, "n") || !r.Lost() && len(ids) != r.Sessions {
			t.Errorf("%s: got the conversations %v, want all; %+v", way.name, ids, r)
		}
		if err := b.Close(); err != nil {
			t.Error(err)
		}
		saved, err := store.Open(t.Context(), to)
		if err != nil {
			t.Fatal(err)
		}
		if faults, err := saved.Check(t.Context()); err != nil || len(faults) > 0 {
			t.Errorf("%s: the salvaged database: got %v, %v; want one that is sound", way.name, faults, err)
		}
		if err := saved.Close(); err != nil {
			t.Error(err)
		}
	}
	t.Logf("%d were shown, %d were refused", shown, refused)
}

// TestVerifySalvageCommand: the command reads what can be read of a damaged database into a new directory, changes nothing where it reads, and
// `data accept` goes on with what was saved.
func TestVerifySalvageCommand(t *testing.T) {
	t.Parallel()
	from, to := t.TempDir(), filepath.Join(t.TempDir(), "new")
	if _, stderr, code := run(t, from, "prompt", "--agent", "mock", "--dir", t.TempDir(), "echo the quick zeppelin"); code != 0 {
		t.Fatal(code, stderr)
	}
	db, err := store.Open(t.Context(), from)
	if err != nil {
		t.Fatal(err)
	}
	var page int
	if err := db.Read().QueryRowContext(t.Context(), `SELECT rootpage FROM sqlite_schema WHERE name = 'session'`).Scan(&page); err != nil {
		t.Fatal(err)
	}
	if err := db.Close(); err != nil {
		t.Fatal(err)
	}
	name := filepath.Join(from, "deskhand.db")
	data, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	clear(data[(page-1)*pageOf : page*pageOf])
	if err := os.WriteFile(name, data, 0o600); err != nil {
		t.Fatal(err)
	}
	if _, stderr, code := run(t, from, "verify", "--salvage", to, "--repair"); code != 2 || !strings.Contains(stderr, "--salvage goes with nothing else") {
		t.Errorf("verify --salvage --repair: got exit code %d, want 2 and the reason\n%s", code, stderr)
	}
	if _, stderr, code := run(t, from, "verify"); code != 1 || !strings.Contains(stderr, "verify --salvage") {
		t.Errorf("verify of a damaged database: got exit code %d, want 1 and the way on\n%s", code, stderr)
	}
	stdout, stderr, code := run(t, from, "verify", "--salvage", to)
	if code != 0 || !strings.Contains(stdout, "1 conversations are in "+to) || !strings.Contains(stdout, "lost      session: ") || !strings.Contains(stdout, "Recovered conversation") {
		t.Errorf("verify --salvage: got exit code %d and %q, want 0, one conversation and what was lost of it\n%s", code, stdout, stderr)
	}
	if now, err := os.ReadFile(name); err != nil || !slices.Equal(now, data) {
		t.Errorf("verify --salvage: got another database where it was read, %v; want it unchanged", err)
	}
	if _, stderr, code := run(t, from, "verify", "--salvage", to); code == 0 || !strings.Contains(stderr, to) {
		t.Errorf("verify --salvage into a directory that is there: got exit code %d, want a refusal that names it\n%s", code, stderr)
	}
	var r struct{ Sessions int }
	stdout, stderr, code = run(t, from, "verify", "--salvage", to+"2", "--json")
	if err := json.Unmarshal([]byte(stdout), &r); err != nil || code != 0 || r.Sessions != 1 {
		t.Errorf("verify --salvage --json: got exit code %d and %q (%v), want 0 and one conversation\n%s", code, stdout, err, stderr)
	}

	saved, err := os.ReadFile(filepath.Join(to, "deskhand.db"))
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(name, saved, 0o600); err != nil {
		t.Fatal(err)
	}
	for _, end := range []string{"-wal", "-shm"} {
		if err := os.Remove(name + end); err != nil && !errors.Is(err, fs.ErrNotExist) {
			t.Fatal(err)
		}
	}
	if _, stderr, code := run(t, from, "verify"); code != 1 || !strings.Contains(stderr, "data accept") {
		t.Errorf("verify with another database in the place of the damaged one: got exit code %d, want 1 and the way on\n%s", code, stderr)
	}
	if _, stderr, code := run(t, from, "data", "accept"); code != 0 {
		t.Errorf("data accept: got exit code %d, want 0\n%s", code, stderr)
	}
	if stdout, stderr, code := run(t, from, "sessions", "list"); code != 0 || !strings.Contains(stdout, "Recovered conversation") {
		t.Errorf("sessions list after data accept: got exit code %d and %q, want the conversation that was saved\n%s", code, stdout, stderr)
	}
}

// TestVerifyRollsBackKilledFirstStart: verify rolls back what a kill during the very first start has left, as every start does.
func TestVerifyRollsBackKilledFirstStart(t *testing.T) {
	t.Parallel()
	made := t.TempDir()
	db, err := sql.Open("sqlite", "file:"+filepath.Join(made, "deskhand.db")+"?_pragma=cache_size(1)&_pragma=journal_mode(DELETE)")
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	db.SetMaxOpenConns(1)
	first, err := os.ReadFile(filepath.Join("..", "store", "migrations", "001_spine.sql"))
	if err != nil {
		t.Fatal(err)
	}
	for _, text := range []string{
		string(first), "PRAGMA user_version=1", "BEGIN IMMEDIATE", "CREATE TABLE half (x)", "PRAGMA user_version=2",
		"INSERT INTO half WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i+1 FROM n WHERE i < 200) SELECT randomblob(4000) FROM n",
	} {
		if _, err := db.ExecContext(t.Context(), text); err != nil {
			t.Fatal(err)
		}
	}
	for _, args := range [][]string{{"verify"}, {"verify", "--repair"}} {
		dir := t.TempDir()
		for _, name := range []string{"deskhand.db", "deskhand.db-journal"} { // as a kill leaves them
			data, err := os.ReadFile(filepath.Join(made, name))
			if err != nil || len(data) == 0 {
				t.Fatalf("%s: got %d bytes, %v; want those of an open transaction", name, len(data), err)
			}
			if err := os.WriteFile(filepath.Join(dir, name), data, 0o600); err != nil {
				t.Fatal(err)
			}
		}
		if stdout, stderr, code := run(t, dir, args...); code != 0 || !strings.Contains(stdout, "All is well") {
			t.Errorf("%s after a killed first start: got exit code %d and %q, want 0 and all well\n%s", strings.Join(args, " "), code, stdout, stderr)
		}
	}
}
