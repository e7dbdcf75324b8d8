package attachments

import (
	"strings"
	"testing"
	"time"

	"deskhand/backend/testkit"
)

// TestIgnoreDeep: a pattern with many ** costs no more than the path is long.
func TestIgnoreDeep(t *testing.T) {
	r, _ := parseIgnore(strings.Repeat("**/a/", 12)+"x", "")
	path := strings.Repeat("a/", 40) + "y"
	done := make(chan struct{})
	go func() { defer close(done); ignored([]ignoring{r}, path, false) }()
	select {
	case <-done:
	case <-time.After(testkit.Limit):
		t.Fatal("still looking")
	}
}
