// Package testkit has what the tests of all packages share.
package testkit

import (
	"testing"
	"time"
)

// Limit bounds every wait of a test for something that must happen, so that a test which waits in vain fails and says for what. No test asserts
// by Limit that something is fast: Limit is far above the longest wait on the slowest machine.
const Limit = 5 * time.Minute

// Until asks every few milliseconds whether holds returns true, and fails the test when holds does not within Limit.
func Until(t testing.TB, what string, holds func() bool) {
	t.Helper()
	for end := time.Now().Add(Limit); !holds(); time.Sleep(5 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("wait: got no %s within %v, want it", what, Limit)
		}
	}
}
