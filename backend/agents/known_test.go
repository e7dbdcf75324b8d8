package agents

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"

	"deskhand/backend/autorun"
)

// Every set that the catalogue names is in the table, and links that Deskhand makes for an agent lie in a place that the agent reads.
func TestAgentsNameSetsOfTheTable(t *testing.T) {
	t.Parallel()
	var file catalogueFile
	if err := json.Unmarshal(bundled, &file); err != nil {
		t.Fatal(err)
	}
	for _, a := range file.Agents {
		for _, name := range a.Deskhand.Reads {
			if !autorun.Known(name) {
				t.Errorf("%s reads the set %q, which is not in the table", a.ID, name)
			}
		}
		places := autorun.Places(a.Deskhand.Reads)
		for _, dir := range a.Deskhand.Quirks.SkillDirs {
			if !slices.ContainsFunc(places, func(p autorun.Place) bool { return p.Folder() && strings.HasPrefix(dir+"/", p.Path) }) {
				t.Errorf("%s: skills are linked in %s, which is in none of the places that the agent reads", a.ID, dir)
			}
		}
	}
}

func TestAutorunReadsOfAgents(t *testing.T) {
	t.Parallel()
	c := Open(Config{})
	defer c.Close()
	if got := c.Reads(Demo); got != nil {
		t.Errorf("Reads(%q): got %v, want none", Demo, got)
	}
	all := autorun.Places(nil)
	for _, id := range []string{"nobody", "nova"} {
		if got := c.Reads(id); len(got) != len(all) {
			t.Errorf("Reads(%q): got %d places, want all %d", id, len(got), len(all))
		}
	}
	if got := c.Reads("codex"); len(got) != 2 || got[0].Path != ".codex/" || got[0].Up != autorun.UpRepository {
		t.Errorf("Reads(codex): got %+v, want .codex/ and .agents/", got)
	}
	for name, want := range map[string]bool{".claude/settings.local.json": true, ".claude/settings.json": true, ".claude/other.json": false, ".claude/x/settings.json": false} {
		if got := slices.ContainsFunc(c.Reads("claude"), func(p autorun.Place) bool { return p.Harmless != nil && p.Names(name) }); got != want {
			t.Errorf("%s has harmless members: got %v, want %v", name, got, want)
		}
	}
}
