package environ

import (
	"fmt"
	"os"
	"testing"

	"go.uber.org/goleak"
)

// TestMain has the test binary play Deskhand's program for a shell that prints the environment.
func TestMain(m *testing.M) {
	if len(os.Args) < 2 || os.Args[1] != "environment" {
		goleak.VerifyTestMain(m)
	}
	if err := PrintEnvironment(os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(3)
	}
	os.Exit(0)
}
