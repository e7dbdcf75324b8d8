package acp_test

import (
	"strings"
	"testing"

	"deskhand/backend/acp"
)

func TestNothingClosesFencedBlock(t *testing.T) {
	t.Parallel()
	many := strings.Repeat("`", 1<<20) // minutes, when ever longer marks were looked for
	for text, want := range map[string]string{
		"":            "```go\n\n```",
		"a\n":         "```go\na\n```",
		"``` b ``":    "````go\n``` b ``\n````",
		"`a````b```c": "`````go\n`a````b```c\n`````",
		many:          many + "`go\n" + many + "\n" + many + "`",
	} {
		if got := acp.Fenced("go", text); got != want {
			t.Errorf("Fenced(%.40q): got %.60q, want %.60q", text, got, want)
		}
	}
}
