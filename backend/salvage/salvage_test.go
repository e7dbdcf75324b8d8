package salvage

import (
	"database/sql"
	"encoding/binary"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"deskhand/backend/store"
)

// long reports whether DESKHAND_LONG asks for many more damages, as "make crash" does.
func long() bool { return os.Getenv("DESKHAND_LONG") != "" }

// conversations is enough for trees of several levels.
const conversations = 14

// filled writes a database that has trees of several levels, rows that overflow their page, and a list of free pages.
func filled(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	db, err := store.Open(t.Context(), dir)
	if err != nil {
		t.Fatal(err)
	}
	rng := rand.New(rand.NewPCG(1, 2)) //nolint:gosec // the same each time
	err = db.Write(t.Context(), func(tx *sql.Tx) error {
		put := func(text string, args ...any) {
			if _, err := tx.ExecContext(t.Context(), text, args...); err != nil {
				t.Fatalf("%s: got error %v, want none", text, err)
			}
		}
		for i := range conversations {
			id := fmt.Sprintf("01a2%04d-0000-7000-8000-000000000000", i)
			put(`INSERT INTO workspace (id, place, path, device, inode, born, created_at) VALUES (?, 'local', ?, 1, ?, 1, 1)`, "w"+id, "/work/"+id, i)
			put(`INSERT INTO session (id, place, workspace, cwd, agent, title, title_by, labels, pinned, unread, draft, acp_session_id, protocol_version, generation, facts, exit,
				created_at, updated_at, archived_at) VALUES (?, 'local', ?, ?, 'mock', ?, 'person', '[]', 0, 0, '', '', 1, 1, ?, '', 1, 1, 0)`,
				id, "w"+id, "/work/"+id, "Conversation "+id, `{"note":"`+strings.Repeat("x", rng.IntN(900))+`"}`)
			for n := range 40 {
				payload := fmt.Sprintf(`{"jsonrpc":"2.0","text":"%s"}`, strings.Repeat("y", rng.IntN(1500)))
				put(`INSERT INTO frame (session, n, generation, at, dir, encoding, payload) VALUES (?, ?, 1, ?, 'in', 'raw', ?)`, id, n+1, 1_700_000_000_000+n, []byte(payload))
				put(`INSERT INTO entry (id, session, seq, data, attachments) VALUES (?, ?, ?, ?, 0)`, fmt.Sprintf("%s-%d", id, n), id, n+1, `{"kind":"agent","text":"`+strings.Repeat("z", rng.IntN(6000))+`"}`)
			}
			put(`INSERT INTO discord_binding (channel, session, data) VALUES (?, ?, '{}')`, fmt.Sprint(100+i), id)
		}
		return nil
	})
	if err == nil { // pages that become free
		err = db.Write(t.Context(), func(tx *sql.Tx) error {
			_, err := tx.ExecContext(t.Context(), `DELETE FROM session WHERE id LIKE '01a2000%' AND id > '01a20003'`)
			return err
		})
	}
	if err != nil {
		t.Fatal(err)
	}
	if err := db.Close(); err != nil {
		t.Fatal(err)
	}
	return dir
}

// counts are the rows of tables.
func counts(t *testing.T, dir string) map[string]int {
	t.Helper()
	db, err := store.Open(t.Context(), dir)
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	faults, err := db.Check(t.Context())
	if err != nil || len(faults) > 0 {
		t.Errorf("the database in %s: got %v, %v; want one that is sound", dir, faults, err)
	}
	have := map[string]int{}
	for _, name := range []string{"workspace", "session", "frame", "entry", "discord_binding"} {
		var n int
		if err := db.Read().QueryRowContext(t.Context(), `SELECT count(*) FROM `+name).Scan(&n); err != nil {
			t.Fatal(err)
		}
		have[name] = n
	}
	var strays int
	if err := db.Read().QueryRowContext(t.Context(), `SELECT count(*) FROM pragma_foreign_key_check`).Scan(&strays); err != nil || strays != 0 {
		t.Errorf("rows that belong to nothing: got %d, %v; want none", strays, err)
	}
	return have
}

// on counts the rows that a page has, by the tables.
func on(t *testing.T, dir string, tables []*table, pages map[uint32]bool) map[string]int {
	t.Helper()
	m, err := openImage(filepath.Join(dir, "deskhand.db"))
	if err != nil {
		t.Fatal(err)
	}
	defer m.close()
	tr := &tree{m: m, seen: map[uint32]bool{}}
	roots, _ := schema(tr)
	have := map[string]int{}
	for _, of := range tables {
		here := false
		tr.seen = map[uint32]bool{}
		err := tr.walk(roots[of.name], &found{table: of, each: func(_ int64, _ []any) error {
			if here {
				have[of.name]++
			}
			return nil
		}})
		if err != nil {
			t.Fatal(err)
		}
		for number := range tr.seen {
			page, err := m.page(number)
			if err != nil {
				t.Fatal(err)
			}
			n, ok := parse(number, page)
			for i := 0; ok && pages[number] && i < len(n.cells); i++ {
				if n.kind != tableInside {
					have[of.name]++
				}
			}
		}
		for number := range pages { // a page that a long row goes on in
			if page, err := m.page(number); err == nil && tr.seen[number] {
				if _, ok := parse(number, page); !ok || binary.BigEndian.Uint32(page) < 1<<16 {
					have[of.name]++
				}
			}
		}
	}
	return have
}

func tablesFor(t *testing.T) []*table {
	t.Helper()
	db, err := store.Open(t.Context(), t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	list, err := ordered(t.Context(), db)
	if err != nil {
		t.Fatal(err)
	}
	return list
}

func copied(t *testing.T, from string) string {
	t.Helper()
	dir := t.TempDir()
	data, err := os.ReadFile(filepath.Join(from, "deskhand.db"))
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, "deskhand.db"), data, 0o600); err != nil {
		t.Fatal(err)
	}
	return dir
}

func TestSalvageReadsAllOfSoundDatabase(t *testing.T) {
	t.Parallel()
	from := filled(t)
	want := counts(t, from)
	to := filepath.Join(t.TempDir(), "new")
	r, err := Run(t.Context(), from, to)
	if err != nil || r.Lost() || len(r.Gaps) > 0 || r.Recovered > 0 || r.Sessions != want["session"] {
		t.Errorf("salvage of a sound database: got %+v, %v; want nothing lost", r, err)
	}
	for name, n := range counts(t, to) {
		if n != want[name] {
			t.Errorf("rows of %s: got %d, want %d", name, n, want[name])
		}
	}
	if _, err := Run(t.Context(), from, to); err == nil {
		t.Error("salvage into a directory that is not empty: got no error, want one")
	}
}

// What is committed is in the log until SQLite takes it over.
func TestSalvageReadsLog(t *testing.T) {
	t.Parallel()
	from := filled(t)
	db, err := store.Open(t.Context(), from)
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	for range 3 {
		if err := db.Write(t.Context(), func(tx *sql.Tx) error {
			_, err := tx.ExecContext(t.Context(), `UPDATE session SET title = 'newest'`)
			return err
		}); err != nil {
			t.Fatal(err)
		}
	}
	to := filepath.Join(t.TempDir(), "new")
	if r, err := Run(t.Context(), from, to); err != nil || r.Lost() {
		t.Fatalf("salvage: got %+v, %v; want nothing lost", r, err)
	}
	saved, err := store.Open(t.Context(), to)
	if err != nil {
		t.Fatal(err)
	}
	defer saved.Close()
	var old int
	if err := saved.Read().QueryRowContext(t.Context(), `SELECT count(*) FROM session WHERE title <> 'newest'`).Scan(&old); err != nil || old != 0 {
		t.Errorf("conversations without what is in the log: got %d, %v; want none", old, err)
	}
}

// Of a page that is damaged only what is on it is lost, wherever it is in a tree; pages that were free give nothing back.
func TestSalvageLosesOnlyRowsOfDamagedPage(t *testing.T) {
	t.Parallel()
	from := filled(t)
	want, tables := counts(t, from), tablesFor(t)
	info, err := os.Stat(filepath.Join(from, "deskhand.db"))
	if err != nil {
		t.Fatal(err)
	}
	rng := rand.New(rand.NewPCG(3, 4)) //nolint:gosec // the same each time
	pages := int(info.Size() / usualPage)
	numbers, further := []int{1, 2, 3}, 3
	if long() {
		further = 60
	}
	for range further {
		numbers = append(numbers, 1+rng.IntN(pages))
	}
	m, err := openImage(filepath.Join(from, "deskhand.db"))
	if err != nil {
		t.Fatal(err)
	}
	roots, _ := schema(&tree{m: m, seen: map[uint32]bool{}})
	if err := m.close(); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"session", "frame", "entry", "workspace", "discord_binding"} {
		numbers = append(numbers, int(roots[name]))
	}
	for _, number := range numbers {
		for _, how := range []string{"zeros", "noise"} {
			dir := copied(t, from)
			page := make([]byte, usualPage)
			if how == "noise" {
				for i := range page {
					page[i] = byte(rng.Uint32())
				}
			}
			f, err := os.OpenFile(filepath.Join(dir, "deskhand.db"), os.O_RDWR, 0)
			if err != nil {
				t.Fatal(err)
			}
			if _, err := f.WriteAt(page, int64(number-1)*usualPage); err != nil {
				t.Fatal(err)
			}
			if err := f.Close(); err != nil {
				t.Fatal(err)
			}
			lost := on(t, from, tables, map[uint32]bool{uint32(number): true}) //nolint:gosec // small
			to := filepath.Join(t.TempDir(), "new")
			r, err := Run(t.Context(), dir, to)
			if err != nil {
				t.Errorf("page %d of %s: salvage: got %v, want none", number, how, err)
				continue
			}
			for name, n := range counts(t, to) {
				if n < want[name]-lost[name] || n > want[name] && name != "session" && name != "workspace" {
					t.Errorf("page %d of %s: rows of %s: got %d, want %d without at most %d; %+v", number, how, name, n, want[name], lost[name], r)
				}
			}
		}
	}
}

// Whatever is wrong with the bytes, salvage comes to an end and gives a database that is sound.
func TestSalvageOfAnyBytesMakesSoundDatabase(t *testing.T) {
	t.Parallel()
	from := filled(t)
	whole, err := os.ReadFile(filepath.Join(from, "deskhand.db"))
	if err != nil {
		t.Fatal(err)
	}
	seeds := uint64(6)
	if long() {
		seeds = 90
	}
	for seed := range seeds {
		rng := rand.New(rand.NewPCG(seed, 9)) //nolint:gosec // the same each time
		data := append([]byte{}, whole...)
		switch seed % 3 {
		case 0: // bits
			for range 200 {
				data[rng.IntN(len(data))] ^= 1 << rng.IntN(8)
			}
		case 1: // the end is cut off
			data = data[:rng.IntN(len(data))]
		case 2: // a stretch of noise
			at := rng.IntN(len(data) - 100_000)
			for i := range 100_000 {
				data[at+i] = byte(rng.Uint32())
			}
		}
		dir := t.TempDir()
		if err := os.WriteFile(filepath.Join(dir, "deskhand.db"), data, 0o600); err != nil {
			t.Fatal(err)
		}
		to := filepath.Join(t.TempDir(), "new")
		r, err := Run(t.Context(), dir, to)
		if err != nil {
			t.Errorf("seed %d: salvage: got %+v, %v; want no error", seed, r, err)
			continue
		}
		counts(t, to)
	}
}
