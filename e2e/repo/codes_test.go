package repo

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// Every code that the backend can answer with has a text in the frontend's catalogue, so that nobody reads "That did not work".
func TestEveryCodeHasAText(t *testing.T) {
	catalogue, err := os.ReadFile("../../frontend/src/strings/en.ts")
	if err != nil {
		t.Fatal(err)
	}
	// Some texts are parts of the catalogue that are loaded with what shows them.
	for _, name := range []string{"agents", "attachments", "browse", "changes", "discord", "equip", "inspect", "keyboard", "panel", "screens", "settings", "worktree"} {
		part, err := os.ReadFile("../../frontend/src/strings/" + name + ".ts")
		if err != nil {
			t.Fatal(err)
		}
		catalogue = append(catalogue, part...)
	}
	const problems, refusals = "exit.", "error."
	patterns := map[string]string{ // where a code stands in the sources, and what its text is called
		`\bproblem[A-Z]\w+\s*= "([a-z_.]+)"`:              problems,
		`\brefused[A-Z]\w+\s*= "([a-z_.]+)"`:              refusals,
		`\bbad\("([a-z_.]+)"`:                             refusals,
		`\bRefusedError\{Code: "([a-z_.]+)"`:              refusals,
		`\bcode :?= "([a-z_]+\.[a-z_.]+)"`:                refusals,
		`\bnewClientError\(http\.Status\w+, "([a-z_.]+)"`: refusals,
	}
	quiet := map[string]bool{"exit.session.restarted": true, "exit.session.quit": true, "exit.session.deleted": true} // these ends are not told
	seen := 0
	for _, dir := range []string{"../../backend", "../../backend/session", "../../backend/httpapi", "../../backend/discord"} {
		files, err := filepath.Glob(filepath.Join(dir, "*.go"))
		if err != nil {
			t.Fatal(err)
		}
		for _, file := range files {
			if strings.HasSuffix(file, "_test.go") {
				continue
			}
			source, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			for pattern, prefix := range patterns {
				for _, m := range regexp.MustCompile(pattern).FindAllSubmatch(source, -1) {
					if prefix == problems && !strings.HasSuffix(dir, "session") {
						continue // ends of agents are told there alone
					}
					seen++
					if key := prefix + string(m[1]); !quiet[key] && !strings.Contains(string(catalogue), "'"+key+"':") {
						t.Errorf("%s: %s has no text %q", filepath.Base(file), m[0], key)
					}
				}
			}
		}
	}
	if seen < 30 {
		t.Errorf("only %d codes were found: the patterns are old", seen)
	}
}
