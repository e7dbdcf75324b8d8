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

	"deskhand/backend/feed"
	"deskhand/backend/maintenance"
	"deskhand/backend/transcript"
)

// verified runs a verification to its end, and returns the codes of its findings, with a plus for those that were repaired.
func verified(t testing.TB, c *Client, wish maintenance.Verify) []string {
	t.Helper()
	if _, err := c.maintainer.Verify(wish); err != nil {
		t.Fatal(err)
	}
	var now maintenance.Verification
	until(t, c, func() bool {
		now = c.maintainer.Verification()
		return now.State != "running"
	})
	if now.State != "done" || now.Done != now.Total || now.EndedAt == nil {
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

// indexed waits until all entries are indexed.
func (s *shelf) indexed(c *Client) {
	s.t.Helper()
	c.cfg.Search.Wake()
	until(s.t, c, func() bool { return s.number(`SELECT count(*) FROM unsearched`) == 0 })
}

// blobFile returns the file of a blob of a session.
func (s *shelf) blobFile() string {
	s.t.Helper()
	var sha []byte
	if err := s.db.Read().QueryRow(`SELECT payload FROM frame WHERE encoding = 'blob' LIMIT 1`).Scan(&sha); err != nil {
		s.t.Fatal(err)
	}
	return filepath.Join(s.dir, "blobs", string(sha[:2]), string(sha)+".zst")
}

func TestVerifyFindsAndRepairs(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		harm   func(s *shelf)
		found  []string // without repair
		repair []string // with repair
		after  []string // at the next verification
	}{
		"all is well": {harm: func(*shelf) {}},
		"entries that the journal does not make": {
			harm:  func(s *shelf) { s.exec(`UPDATE entry SET data = json_set(data, '$.text', 'other') WHERE seq < 400`) },
			found: []string{"entries.differ"}, repair: []string{"entries.differ"}, after: []string{"entries.differ"},
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
			found: []string{"turns.differ"}, repair: []string{"turns.differ"}, after: []string{"turns.differ"},
		},
		"a message of which one bit has changed": {
			harm: func(s *shelf) {
				s.exec(`UPDATE frame SET payload = CAST(replace(CAST(payload AS TEXT), 'sessionUpdate', 'sessionUpdatd') AS BLOB) WHERE session = 's' AND encoding = 'raw' AND dir = 'in'
					AND n = (SELECT max(n) FROM frame WHERE session = 's' AND encoding = 'raw' AND dir = 'in' AND CAST(payload AS TEXT) LIKE '%sessionUpdate%')`)
			},
			found: []string{"journal.damaged"}, repair: []string{"journal.damaged"}, after: []string{"journal.damaged"},
		},
		"the time of a message": {
			harm:  func(s *shelf) { s.exec(`UPDATE frame SET at = at + 65536 WHERE session = 's' AND n = 9`) },
			found: []string{"journal.damaged"}, repair: []string{"journal.damaged"}, after: []string{"journal.damaged"},
		},
		"records of a conversation and a turn": {
			harm: func(s *shelf) {
				s.exec(`UPDATE session SET labels = '[', facts = '{"a"' WHERE id = 's'`)
				s.exec(`UPDATE turn SET usage = '{' WHERE rowid = 1`)
			},
			found: []string{"database.record"}, repair: []string{"database.record"}, after: []string{"database.record"},
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
			until(t, c, func() bool { // the work that a start does by itself is over
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
			check("looked at", verified(t, c, maintenance.Verify{}), tc.found)
			if s.told("s") != before {
				t.Error("a look has changed something")
			}
			check("repaired", verified(t, c, maintenance.Verify{Repair: true}), tc.repair)
			s.indexed(c)
			check("after that", verified(t, c, maintenance.Verify{}), tc.after)
			if n := s.number(`SELECT count(*) FROM session`); n != 2 {
				t.Errorf("%d conversations are left", n)
			}
		})
	}
}

func TestVerifyRunsOnceAndIsCancelled(t *testing.T) {
	t.Parallel()
	s := openShelf(t)
	s.put("s", newStoryteller(t, 9).tell(12))
	c := s.open()
	until(t, c, s.current)
	if now := c.maintainer.Verification(); now.State != "none" || now.Findings == nil {
		t.Errorf("%+v before the first", now)
	}
	c.maintainer.CancelVerify() // no verification runs
	begun, err := c.maintainer.Verify(maintenance.Verify{})
	if err != nil || begun.State != "running" || begun.StartedAt == nil {
		t.Fatalf("Verify: got %+v, %v; want it running since a time", begun, err)
	}
	if _, err := c.maintainer.Verify(maintenance.Verify{}); err == nil || !strings.Contains(err.Error(), "verify.running") {
		t.Errorf("a second one: %v", err)
	}
	c.maintainer.CancelVerify()
	events := until(t, c, func() bool { return c.maintainer.Verification().State == "cancelled" })
	if !slices.ContainsFunc(events, func(e feed.Event) bool {
		var now maintenance.Verification
		return e.Type == maintenance.EventVerification && json.Unmarshal(e.Data, &now) == nil && now.State == "cancelled"
	}) {
		t.Error("its end was not told")
	}
	if got := verified(t, c, maintenance.Verify{}); len(got) > 0 {
		t.Errorf("the next one finds %v", got)
	}
}

// flip changes a letter of the agent's text in a journal, as a damaged disk may; without sums the message has no checksum, as in older
// versions.
func (s *shelf) flip(sums bool) {
	s.t.Helper()
	sum := "sum"
	if !sums {
		sum = "NULL"
	}
	const said = `session = 's' AND encoding = 'raw' AND dir = 'in' AND CAST(payload AS TEXT) LIKE '%"text":"_%agent_message_chunk%'`
	if !sums {
		s.exec(`UPDATE frame SET sum = NULL`)
	}
	s.exec(`UPDATE frame SET payload = CAST(replace(CAST(payload AS TEXT), '"text":"', '"text":"Q') AS BLOB), sum = ` + sum + ` WHERE session = 's' AND n = (SELECT min(n) FROM frame WHERE ` + said + `)`)
}

// When a journal and a transcript contradict each other, the finding shows both, and the person chooses between them.
func TestVerifyLeavesTheChoiceOfTranscriptOrJournal(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		wish  maintenance.Verify
		taken bool
		found []string
		after []string
	}{
		"none":           {maintenance.Verify{Repair: true}, false, []string{"entries.differ"}, []string{"entries.differ"}},
		"the journal":    {maintenance.Verify{TakeJournal: []string{"s"}}, true, []string{"entries.differ+"}, nil},
		"the transcript": {maintenance.Verify{KeepTranscript: []string{"s"}}, false, []string{"entries.differ+"}, nil},
		"of another":     {maintenance.Verify{Repair: true, TakeJournal: []string{"other"}}, false, []string{"entries.differ"}, []string{"entries.differ"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := openShelf(t)
			s.put("s", newStoryteller(t, 7).tell(4))
			s.put("other", newStoryteller(t, 8).tell(1))
			c := s.open()
			s.indexed(c)
			until(t, c, s.current)
			before := s.told("s")
			s.flip(false)
			if got := verified(t, c, tc.wish); !slices.Equal(got, tc.found) {
				t.Errorf("verify %+v: got %v, want %v", tc.wish, got, tc.found)
			}
			f := c.maintainer.Verification().Findings[0]
			if !strings.Contains(f.Params["made"], "Q") || f.Params["shown"] == f.Params["made"] || f.Params["unchecked"] == "0" || f.Params["different"] != "1" {
				t.Errorf("the finding: got %v, want both sides of one entry, and how many messages have no checksum", f.Params)
			}
			if taken := s.told("s") != before; taken != tc.taken {
				t.Errorf("the transcript was replaced: got %v, want %v", taken, tc.taken)
			}
			s.indexed(c)
			if got := verified(t, c, maintenance.Verify{}); !slices.Equal(got, tc.after) && len(got)+len(tc.after) > 0 {
				t.Errorf("the verification after it: got %v, want %v", got, tc.after)
			}
			if !tc.taken && tc.after == nil { // the kept side stays at the next update, until the journal is chosen after all
				s.exec(`UPDATE session SET projection = 1`)
				if err := c.maintainer.Update(t.Context(), "s"); err != nil || s.told("s") != before {
					t.Errorf("the rebuild after an update: got a transcript that changed, or %v; want the one that is kept", err)
				}
				verified(t, c, maintenance.Verify{TakeJournal: []string{"s"}})
				if s.told("s") == before {
					t.Error("the journal that is taken after all: got the transcript that was kept, want what it makes")
				}
			}
		})
	}
}

// A message whose checksum is wrong replaces nothing: neither by a repair, nor by a choice, nor by a rebuild after an update.
func TestVerifyReplacesNothingByDamagedMessage(t *testing.T) {
	t.Parallel()
	for name, harm := range map[string]func(s *shelf){
		"of which a letter has changed": func(s *shelf) { s.flip(true) },
		"of before there were checksums, that is no JSON any more": func(s *shelf) {
			s.flip(false)
			s.exec(`UPDATE frame SET payload = CAST(replace(CAST(payload AS TEXT), '"text":"Q', '"text":\"Q') AS BLOB) WHERE CAST(payload AS TEXT) LIKE '%"text":"Q%'`)
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := openShelf(t)
			s.put("s", newStoryteller(t, 7).tell(4))
			c := s.open()
			until(t, c, s.current)
			before := s.told("s")
			harm(s)
			s.exec(`UPDATE session SET projection = 1`)
			if err := c.maintainer.Update(t.Context(), "s"); err != nil || s.told("s") != before {
				t.Errorf("the rebuild after an update: got a transcript that changed, or %v; want the one of before", err)
			}
			if n := s.number(`SELECT projection FROM session`); n != -transcript.Projection {
				t.Errorf("the version of the transcript: got %d, want %d, which says that it was tried", n, -transcript.Projection)
			}
			wish := maintenance.Verify{Repair: true}
			if name == "of which a letter has changed" {
				wish.TakeJournal = []string{"s"}
			}
			if got := verified(t, c, wish); len(got) == 0 || strings.HasSuffix(got[0], "+") || s.told("s") != before {
				t.Errorf("verify %+v: got %v, want a finding, and the transcript of before", wish, got)
			}
		})
	}
}
