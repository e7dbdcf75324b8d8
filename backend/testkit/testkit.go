// Package testkit has what the tests of all packages share.
package testkit

import "time"

// Limit bounds every wait of a test for something that must happen, so that a test which waits in vain fails and says for what. No test asserts
// by Limit that something is fast: Limit is far above the longest wait on the slowest machine.
const Limit = 5 * time.Minute
