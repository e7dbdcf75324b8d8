package undo

import (
	"slices"
	"sync"
	"time"

	"deskhand/backend/snapshot"
)

// Differences are cached, so that a person who opens one file after the other does not wait for each. A difference stays for cacheFor after it was
// last asked for. Beside the newest difference, the others stay only as long as all together have no more than maxDiffBytes of lines.
const (
	maxDiffs     = 6
	maxDiffBytes = 8 << 20
	cacheFor     = 10 * time.Minute
)

// diffCache is the differences of trees that were asked for lately.
type diffCache struct {
	mu     sync.Mutex // protects the fields below
	diffs  []cachedDiff
	expiry *time.Timer // nil while there are no diffs
}

type cachedDiff struct {
	was, became string
	list        []snapshot.Change
	asked       time.Time // for the last time
	size        int
}

// get returns a cached difference, which then stays for another cacheFor.
func (c *diffCache) get(was, became string) ([]snapshot.Change, bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	i := slices.IndexFunc(c.diffs, func(d cachedDiff) bool { return d.was == was && d.became == became })
	if i < 0 {
		return nil, false
	}
	c.diffs[i].asked = time.Now()
	return c.diffs[i].list, true
}

// put adds a difference, in place of those that were not asked for the longest.
func (c *diffCache) put(was, became string, list []snapshot.Change) {
	c.mu.Lock()
	defer c.mu.Unlock()
	now := cachedDiff{was, became, list, time.Now(), sizeOf(list)}
	slices.SortStableFunc(c.diffs, func(a, b cachedDiff) int { return b.asked.Compare(a.asked) })
	all, n := now.size, 0
	for ; n < min(len(c.diffs), maxDiffs-1) && all+c.diffs[n].size <= maxDiffBytes; n++ {
		all += c.diffs[n].size
	}
	c.diffs = append([]cachedDiff{now}, c.diffs[:n]...)
	if c.expiry == nil {
		c.expiry = time.AfterFunc(cacheFor, c.expire)
	}
}

// expire drops the differences that nobody has asked for.
func (c *diffCache) expire() {
	c.mu.Lock()
	defer c.mu.Unlock()
	next := cacheFor
	c.diffs = slices.DeleteFunc(c.diffs, func(d cachedDiff) bool {
		left := cacheFor - time.Since(d.asked)
		if left > 0 {
			next = min(next, left)
		}
		return left <= 0
	})
	if c.expiry = nil; len(c.diffs) > 0 {
		c.expiry = time.AfterFunc(next, c.expire)
	}
}

// sizeOf returns roughly how many bytes the lines of a difference take.
func sizeOf(list []snapshot.Change) (bytes int) {
	const ofLine = 32 // beside its text
	for i := range list {
		for _, h := range list[i].Hunks {
			bytes += len(h.Lines) * ofLine
			for _, line := range h.Lines {
				bytes += len(line.Text)
			}
		}
	}
	return bytes
}
