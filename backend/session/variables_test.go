package session_test

import (
	"encoding/json"
	"os"
	"strings"
	"testing"
)

// The variables of an entry are filled in for the agent, and stored and shown by name; a variable that is not set is told.
func TestVariablesOfMCPServers(t *testing.T) {
	t.Setenv("ISSUES_TOKEN", "sesame-42-open")
	t.Setenv("NOTES_PLACE", "place-of-notes-7")
	d := open(t, t.TempDir())
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	command, _ := json.Marshal([]string{self, "mcp-server", "${NOTES_PLACE}"})
	unset, _ := json.Marshal([]string{self, "mcp-server", "${NOT_SET_ANYWHERE}"})
	d.mcpFile(`{"notes":{"type":"local","command":` + string(command) + `,"env":{"KEY":"${ISSUES_TOKEN}"}},"other":{"type":"local","command":` + string(unset) + `}}`)
	list, err := d.Launch().Executables(t.Context(), d.work)
	if err != nil || len(list) != 2 {
		t.Fatalf("Trust: got %+v, %v; want two servers", list, err)
	}
	if got := list[0].Detail; !strings.Contains(got, "${NOTES_PLACE}") || !strings.Contains(got, "variables: ISSUES_TOKEN NOTES_PLACE") || strings.Contains(got, "place-of-notes-7") {
		t.Errorf("what is approved: got %q, want the variables by their names", got)
	}
	if err := d.Launch().Approve(t.Context(), d.work, []string{list[0].Hash, list[1].Hash}); err != nil {
		t.Fatal(err)
	}
	s := d.create()
	d.ready(s.ID)
	if got := d.tools(s.ID); !strings.Contains(got, "started with place-of-notes-7") {
		t.Errorf("the agent's servers: got %q, want the one that was started with the value", got)
	}
	if got := notices(d.transcript(s.ID)); !strings.Contains(got, `"other" was not given`) || !strings.Contains(got, "the environment variable NOT_SET_ANYWHERE is not set") {
		t.Errorf("notices: got %q, want the server and the variable that is not set", got)
	}
	sent := d.sent(s.ID)
	if !strings.Contains(sent, "${NOTES_PLACE}") || strings.Contains(sent, "place-of-notes-7") || strings.Contains(sent, "sesame-42-open") {
		t.Errorf("the journal: got %s, want the entry's own words", sent)
	}
}
