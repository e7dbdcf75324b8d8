package undo

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
		c := &diffCache{}
		long := func(bytes int) []snapshot.Change {
			return []snapshot.Change{{Hunks: []snapshot.Hunk{{Lines: []snapshot.Line{{Text: strings.Repeat("x", bytes)}}}}}}
		}
		holds := func(want string) {
			t.Helper()
			synctest.Wait()
			c.mu.Lock()
			defer c.mu.Unlock()
			have := ""
			for _, d := range c.diffs {
				have += d.was
			}
			if have != want {
				t.Errorf("%q are held, want %q", have, want)
			}
		}
		for _, was := range []string{"a", "b", "c", "d", "e", "f", "g"} {
			c.put(was, "after", long(1<<20))
			time.Sleep(time.Second)
		}
		holds("gfedcb")
		if _, held := c.get("c", "after"); !held {
			t.Error("it is asked for in vain")
		}
		time.Sleep(time.Second)
		c.put("h", "after", long(6<<20))
		holds("hc")
		c.put("i", "after", long(20<<20))
		holds("i")
		time.Sleep(cacheFor / 2)
		c.put("j", "after", long(1))
		holds("j") // the one before takes too much beside it
		c.put("k", "after", long(1))
		time.Sleep(cacheFor / 2)
		if _, held := c.get("k", "after"); !held {
			t.Error("it was let go too soon")
		}
		time.Sleep(cacheFor - time.Second)
		holds("k")
		time.Sleep(2 * time.Second)
		holds("")
		c.mu.Lock()
		defer c.mu.Unlock()
		if c.expiry != nil {
			t.Error("it goes on waiting")
		}
	})
}
