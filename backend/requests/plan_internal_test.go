package requests

import (
	"strings"
	"testing"

	"deskhand/backend/storetest"
)

// What a page of a transcript needs is found by ids, however many requests there are.
func TestNamedRowsAreFoundByTheirIDs(t *testing.T) {
	db := storetest.Open(t, t.TempDir())
	defer db.Close()
	plan := storetest.Plan(t, db, namedOrWaiting, `["a"]`, "s")
	if !strings.HasPrefix(plan, "SEARCH request USING") || strings.Contains(plan, "SCAN request USING INDEX sqlite_autoindex") || !strings.Contains(plan, "INDEX request_open") {
		t.Errorf("plan: got\n%s\nwant a search by ids, and those that are open by the index request_open", plan)
	}
}
