package agents

import (
	"encoding/json"
	"path"
	"slices"
	"strings"
	"testing"
)

// TestReadsAreComplete: each set that an agent has is there, each is of use, and what is linked for an agent is in its places.
func TestReadsAreComplete(t *testing.T) {
	t.Parallel()
	var file catalogueFile
	if err := json.Unmarshal(bundled, &file); err != nil {
		t.Fatal(err)
	}
	for name, set := range file.Deskhand.Reads {
		for _, r := range set {
			if _, err := path.Match(r.Path, "x"); err != nil || r.Path == "" || path.IsAbs(r.Path) || strings.Contains(r.Path, "..") || !slices.Contains([]string{"", UpRepository, UpAll}, r.Up) {
				t.Errorf("%s: %+v %v", name, r, err)
			}
			covered := slices.ContainsFunc(set, func(o Read) bool { return o.Folder() && strings.HasPrefix(r.Path, o.Path) && o.Path != r.Path })
			if strings.ContainsAny(r.Path, "*?[") && !covered {
				t.Errorf("%s: nobody looks for the pattern %s", name, r.Path)
			}
		}
	}
	for _, a := range file.Agents {
		for _, name := range a.Deskhand.Reads {
			if len(file.Deskhand.Reads[name]) == 0 {
				t.Errorf("%s: there is no set %s", a.ID, name)
			}
		}
		places := readsOf(a.Deskhand.Reads)
		for _, dir := range a.Deskhand.Quirks.SkillDirs {
			if !slices.ContainsFunc(places, func(r Read) bool { return r.Folder() && strings.HasPrefix(dir+"/", r.Path) }) {
				t.Errorf("%s: nobody looks into %s", a.ID, dir)
			}
		}
	}
}

func TestReadsOfAgents(t *testing.T) {
	t.Parallel()
	c := Open(Config{})
	defer c.Close()
	if list := c.Reads(Demo); list != nil {
		t.Errorf("the demo agent reads %v", list)
	}
	all := c.AllReads()
	if len(all) < 30 || len(c.Reads("nobody")) != len(all) || len(c.Reads("nova")) != len(all) {
		t.Errorf("%d", len(all))
	}
	if list := c.Reads("codex"); len(list) != 2 || list[0].Path != ".codex/" || list[0].Up != UpRepository {
		t.Errorf("%+v", list)
	}
	for name, want := range map[string]bool{".claude/settings.local.json": true, ".claude/settings.json": true, ".claude/other.json": false, ".claude/x/settings.json": false} {
		if got := slices.ContainsFunc(c.Reads("claude"), func(r Read) bool { return r.Harmless != nil && r.Names(name) }); got != want {
			t.Errorf("%s: %v", name, got)
		}
	}
}
