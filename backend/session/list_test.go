package session

import (
	"strings"
	"testing"

	"deskhand/backend/storetest"
)

// The list of sessions reads only the listed rows, in the order of the index.
func TestListIsReadByItsIndex(t *testing.T) {
	db := storetest.Open(t, t.TempDir())
	defer db.Close()
	for name, tc := range map[string]struct {
		where string
		args  []any
	}{
		"the first": {listed, []any{true, 10}},
		"a further": {listed + listedBefore, []any{true, 1, "x", 10}},
	} {
		plan := storetest.Plan(t, db, "SELECT "+sessionColumns+sessionFrom+tc.where+listedFirst, tc.args...)
		if !strings.HasPrefix(plan, "SEARCH s USING INDEX session_updated") || strings.Contains(plan, "SCAN s") || strings.Contains(plan, "USE TEMP B-TREE FOR ORDER BY") {
			t.Errorf("plan of %s: got\n%s\nwant a search by session_updated, without a scan or a sort", name, plan)
		}
	}
}
