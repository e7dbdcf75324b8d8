package session

import (
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"deskhand/backend/snapshot"
)

// Differences are held for who looks at them, and not for as long as the program runs.
func TestDifferencesAreLetGo(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		l := &looks{}
		long := func(bytes int) []snapshot.Change {
			return []snapshot.Change{{Hunks: []snapshot.Hunk{{Lines: []snapshot.Line{{Text: strings.Repeat("x", bytes)}}}}}}
		}
		holds := func(want string) {
			t.Helper()
			synctest.Wait()
			l.mu.Lock()
			defer l.mu.Unlock()
			have := ""
			for _, d := range l.diffs {
				have += d.was
			}
			if have != want {
				t.Errorf("%q are held, want %q", have, want)
			}
		}
		for _, was := range []string{"a", "b", "c", "d", "e", "f", "g"} {
			l.hold(was, "after", long(1<<20))
			time.Sleep(time.Second)
		}
		holds("gfedcb")
		if _, held := l.held("c", "after"); !held {
			t.Error("it is asked for in vain")
		}
		time.Sleep(time.Second)
		l.hold("h", "after", long(6<<20))
		holds("hc")
		l.hold("i", "after", long(20<<20))
		holds("i")
		time.Sleep(holdCompared / 2)
		l.hold("j", "after", long(1))
		holds("j") // the one before takes too much beside it
		l.hold("k", "after", long(1))
		time.Sleep(holdCompared / 2)
		if _, held := l.held("k", "after"); !held {
			t.Error("it was let go too soon")
		}
		time.Sleep(holdCompared - time.Second)
		holds("k")
		time.Sleep(2 * time.Second)
		holds("")
		l.mu.Lock()
		defer l.mu.Unlock()
		if l.letGo != nil {
			t.Error("it goes on waiting")
		}
	})
}
