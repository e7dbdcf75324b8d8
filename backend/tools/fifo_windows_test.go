package tools_test

import "testing"

// fifo makes none: there are no such files here, and what is not there is refused as well.
func fifo(*testing.T, string) {}
