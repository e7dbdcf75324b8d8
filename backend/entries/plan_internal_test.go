package entries

import (
	"strings"
	"testing"

	"deskhand/backend/storetest"
)

// What a page of a transcript needs is found by ids, however many turns there are.
func TestNamedRowsAreFoundByTheirIDs(t *testing.T) {
	db := storetest.Open(t, t.TempDir())
	defer db.Close()
	plan := storetest.Plan(t, db, "SELECT id FROM turn "+namedOrRunning, `["a"]`, "s")
	if !strings.HasPrefix(plan, "SEARCH turn USING") || strings.Contains(plan, "SCAN turn USING INDEX sqlite_autoindex") || !strings.Contains(plan, "INDEX turn_open") {
		t.Errorf("plan: got\n%s\nwant a search by ids, and those that are open by the index turn_open", plan)
	}
}
