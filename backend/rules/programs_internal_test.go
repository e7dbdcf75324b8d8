package rules

import (
	"path"
	"slices"
	"strings"
	"testing"
)

// Each row says where it is from, and contradicts neither itself nor another one.
func TestProgramTableIsConsistent(t *testing.T) {
	seen := map[string]bool{}
	for name, rows := range programs() {
		for _, row := range rows {
			of := strings.Join(append([]string{name}, row.words...), " ")
			if seen[of] {
				t.Errorf("%s: got two rows, want one", of)
			}
			seen[of] = true
			if !strings.HasPrefix(row.source, "https://") {
				t.Errorf("%s: got the source %q, want an address", of, row.source)
			}
			if row.offered && len(rows) > 1 && len(row.words) == 0 {
				t.Errorf("row of %s: got offered for all commands at once, want not offered", of)
			}
			if row.others && row.operands.most >= 0 {
				t.Errorf("row of %s: got a limit of operands beside unlisted options, want no limit, as operands cannot be told from values", of)
			}
			for _, pattern := range slices.Concat(row.refuses, row.operands.not) {
				if _, err := path.Match(pattern, ""); err != nil || strings.Contains(pattern, "/") {
					t.Errorf("%s: got the pattern %q (%v), want one with _ for /", of, pattern, err)
				}
			}
			for option := range row.options {
				if len(option) < 2 || option[0] != '-' || row.refused(option) {
					t.Errorf("%s: got %q among what is harmless, want an option that is not refused", of, option)
				}
			}
		}
	}
}
