package session

import (
	"bytes"
	"encoding/json"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"
)

// verified runs a verification to its end and gives its findings, the codes of those that are repaired with a plus.
func verified(t *testing.T, c *Client, wish Verify) []string {
	t.Helper()
	if _, err := c.Verify(wish); err != nil {
		t.Fatal(err)
	}
	var now Verification
	until(t, c, func() bool {
		now = c.Verification()
		return now.State != verifyRunning
	})
	if now.State != verifyDone || now.Done != now.Total || now.EndedAt == nil {
		t.Errorf("%s, %d of %d", now.State, now.Done, now.Total)
	}
	codes := []string{}
	for _, f := range now.Findings {
		code := f.Code
		if f.Repaired {
			code += "+"
		}
		if !slices.Contains(codes, code) {
			codes = append(codes, code)
		}
		if testing.Verbose() {
			t.Logf("%+v", f)
		}
	}
	return codes
}

// indexed waits until nothing waits for the index.
func (s *shelf) indexed(c *Client) {
	s.t.Helper()
	c.changedEntries()
	until(s.t, c, func() bool { return s.number(`SELECT count(*) FROM unsearched`) == 0 })
}

// blobFile is the file of some blob of a session.
func (s *shelf) blobFile() string {
	s.t.Helper()
	var sha []byte
	if err := s.db.Read().QueryRow(`SELECT payload FROM frame WHERE encoding = 'blob' LIMIT 1`).Scan(&sha); err != nil {
		s.t.Fatal(err)
	}
	return filepath.Join(s.dir, "blobs", string(sha[:2]), string(sha)+".zst")
}

func TestVerify(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		harm   func(s *shelf)
		found  []string // without repair
		repair []string // with
		after  []string // at the next verification
	}{
		"all is well": {harm: func(*shelf) {}},
		"entries that the journal does not make": {
			harm:  func(s *shelf) { s.exec(`UPDATE entry SET data = json_set(data, '$.text', 'other') WHERE seq < 400`) },
			found: []string{"entries.differ"}, repair: []string{"entries.differ+"},
		},
		"entries and turns that are missing": {
			harm: func(s *shelf) {
				s.exec(`DELETE FROM entry WHERE rowid % 3 = 0`)
				s.exec(`DELETE FROM turn WHERE rowid % 2 = 0`)
			},
			found: []string{"entries.differ", "turns.differ"}, repair: []string{"entries.differ+", "turns.differ+"},
		},
		"a turn that is said to run": {
			harm:  func(s *shelf) { s.exec(`UPDATE turn SET stop_reason = 'cancelled' WHERE rowid = 1`) },
			found: []string{"turns.differ"}, repair: []string{"turns.differ+"},
		},
		"a gap in the journal": {
			harm:  func(s *shelf) { s.exec(`DELETE FROM frame WHERE session = 's' AND n BETWEEN 30 AND 33`) },
			found: []string{"journal.gap"}, repair: []string{"journal.gap"}, after: []string{"journal.gap"},
		},
		"a frame that cannot be read": {
			harm:  func(s *shelf) { s.exec(`UPDATE frame SET payload = x'00' WHERE encoding = 'zstd' AND session = 's'`) },
			found: []string{"journal.damaged"}, repair: []string{"journal.damaged"}, after: []string{"journal.damaged"},
		},
		"a blob that is not there": {
			harm: func(s *shelf) {
				if err := os.Remove(s.blobFile()); err != nil {
					s.t.Fatal(err)
				}
			},
			found: []string{"blob.missing"}, repair: []string{"blob.missing"}, after: []string{"blob.missing"},
		},
		"a blob that was changed": {
			harm: func(s *shelf) {
				if err := os.WriteFile(s.blobFile(), []byte("other"), 0o600); err != nil {
					s.t.Fatal(err)
				}
			},
			found: []string{"blob.damaged"}, repair: []string{"blob.damaged"}, after: []string{"blob.damaged"},
		},
		"a blob that nothing names": {
			harm: func(s *shelf) {
				sha, err := s.db.Blobs.Put(bytes.Repeat([]byte("x"), 20_000))
				if err != nil {
					s.t.Fatal(err)
				}
				old := time.Now().Add(-time.Hour)
				if err := os.Chtimes(filepath.Join(s.dir, "blobs", sha[:2], sha+".zst"), old, old); err != nil {
					s.t.Fatal(err)
				}
			},
			found: []string{"blob.unused"}, repair: []string{"blob.unused+"},
		},
		"an index that lacks entries, and has too many": {
			harm: func(s *shelf) {
				s.exec(`DELETE FROM words WHERE rowid IN (SELECT id FROM words_docsize LIMIT 5)`)
				s.exec(`INSERT INTO words (rowid, text) VALUES (999999, 'of something that is gone')`)
			},
			found: []string{"search.missing", "search.extra"}, repair: []string{"search.missing+", "search.extra+"},
		},
		"an index that is damaged": {
			harm:  func(s *shelf) { s.exec(`UPDATE words_data SET block = x'00000000' WHERE id > 10`) },
			found: []string{"search.damaged"}, repair: []string{"search.damaged+"},
		},
		"a request of an agent that has ended": {
			harm: func(s *shelf) {
				s.exec(`INSERT INTO request (id, session, generation, status, data, created_at) VALUES ('r', 's', 1, 'answered', '{}', 1)`)
			},
			found: []string{"requests.differ"}, repair: []string{"requests.differ"}, after: []string{"requests.differ"},
		},
		"a directory and an agent that are gone": {
			harm: func(s *shelf) {
				s.exec(`UPDATE workspace SET path = ?`, filepath.Join(s.dir, "moved away"))
				s.exec(`UPDATE session SET agent = 'nobody' WHERE id = 's'`)
			},
			found: []string{"workspace.missing", "session.agent_unknown"}, repair: []string{"workspace.missing", "session.agent_unknown"},
			after: []string{"workspace.missing", "session.agent_unknown"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := openShelf(t)
			s.put("s", newStoryteller(t, 7).tell(4))
			s.put("other", newStoryteller(t, 8).tell(1))
			sha, err := s.db.Blobs.Put([]byte("of nothing"))
			if err != nil {
				t.Fatal(err)
			}
			c := s.open()
			s.indexed(c)
			until(t, c, func() bool { // what a start does by itself is over
				_, err := os.Stat(filepath.Join(s.dir, "blobs", sha[:2], sha+".zst"))
				return errors.Is(err, fs.ErrNotExist)
			})
			tc.harm(s)
			check := func(what string, got, want []string) {
				t.Helper()
				if !slices.Equal(got, want) && len(got)+len(want) > 0 {
					t.Errorf("%s: %v, want %v", what, got, want)
				}
			}
			before := s.told("s")
			check("looked at", verified(t, c, Verify{}), tc.found)
			if s.told("s") != before {
				t.Error("a look has changed something")
			}
			check("repaired", verified(t, c, Verify{Repair: true}), tc.repair)
			s.indexed(c)
			check("after that", verified(t, c, Verify{}), tc.after)
			if n := s.number(`SELECT count(*) FROM session`); n != 2 {
				t.Errorf("%d conversations are left", n)
			}
		})
	}
}

func TestOneVerificationAtATimeAndItsEnd(t *testing.T) {
	t.Parallel()
	s := openShelf(t)
	s.put("s", newStoryteller(t, 9).tell(12))
	c := s.open()
	until(t, c, s.current)
	if now := c.Verification(); now.State != verifyNone || now.Findings == nil {
		t.Errorf("%+v before the first", now)
	}
	c.CancelVerify() // which is none
	begun, err := c.Verify(Verify{})
	if err != nil || begun.State != verifyRunning || begun.StartedAt == nil {
		t.Fatalf("%+v %v", begun, err)
	}
	if _, err := c.Verify(Verify{}); err == nil || !strings.Contains(err.Error(), refusedVerifying) {
		t.Errorf("a second one: %v", err)
	}
	c.CancelVerify()
	events := until(t, c, func() bool { return c.Verification().State == verifyCancelled })
	if !slices.ContainsFunc(events, func(e Event) bool {
		var now Verification
		return e.Type == eventVerify && json.Unmarshal(e.Data, &now) == nil && now.State == verifyCancelled
	}) {
		t.Error("its end was not told")
	}
	if got := verified(t, c, Verify{}); len(got) > 0 {
		t.Errorf("the next one finds %v", got)
	}
}
