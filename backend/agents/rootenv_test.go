package agents_test

import (
	"os"
	"slices"
	"testing"
)

// An entry of agents.json for an agent of the catalogue is started with the agent's variables for root; the entry's own variables win.
func TestRootVariablesOfOverriddenEntries(t *testing.T) {
	t.Parallel()
	needShell(t)
	for own, want := range map[string]string{"": "IS_SANDBOX=1", "0": "IS_SANDBOX=0"} {
		e := script("claude")
		e["override"] = true
		if own != "" {
			e["env"] = map[string]string{"IS_SANDBOX": own}
		}
		env := openGuests(t, e).environOf("claude")
		if got := slices.Contains(env, want); got != (os.Geteuid() == 0 || own != "") {
			t.Errorf("with IS_SANDBOX %q in agents.json, as user %d, got %s %v in %q", own, os.Geteuid(), want, got, env)
		}
	}
}
