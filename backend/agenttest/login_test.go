package agenttest

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestLoginAtATerminal(t *testing.T) {
	account := filepath.Join(t.TempDir(), "signed-in")
	t.Setenv(signedInVariable, account)
	for _, answer := range []string{"no\n", "", "yes"} {
		var out bytes.Buffer
		err := signInHere(strings.NewReader(answer), &out)
		_, there := os.Stat(account)
		if yes := answer == "yes"; (err == nil) != yes || (there == nil) != yes || !strings.Contains(out.String(), "Type yes to sign in: ") {
			t.Errorf(`%q: got error %v, there %v, out %q, want (err == nil) %v, (there == nil) %v and out with "Type yes to sign in: "`, answer, err, there, out.String(), yes, yes)
		}
	}
}
