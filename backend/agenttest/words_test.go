package agenttest

import (
	"fmt"
	"os"
	"strings"
	"testing"
)

// TestComment compares the table in the comment of Demo with the code's.
func TestComment(t *testing.T) {
	source, err := os.ReadFile("words.go")
	if err != nil {
		t.Fatal(err)
	}
	var table strings.Builder
	for _, w := range words() {
		fmt.Fprintf(&table, "//\t%-15s  %s\n", w.Name, w.Does)
	}
	if !strings.Contains(string(source), "//\n"+table.String()+"//\n") {
		t.Errorf("comment of Demo: got another table, want\n%s", table.String())
	}
}
