package startmode_test

import (
	"testing"

	"deskhand/backend/agents"
	"deskhand/backend/startmode"
	"deskhand/backend/storetest"
)

// Every mode that begins a conversation asks, and no mode stands in two lists.
func TestCatalogueModesAreSound(t *testing.T) {
	t.Parallel()
	table := agents.Open(agents.Config{})
	defer table.Close()
	all, err := table.All()
	if err != nil {
		t.Fatal(err)
	}
	measured := 0
	for _, a := range all {
		known, is := table.Modes(a.ID)
		if is {
			measured++
		}
		modes := startmode.Of(known, is)
		for _, mode := range known.Begin {
			if !modes.Safe(mode) {
				t.Errorf("%s: conversations begin in %q, which %s", a.ID, mode, modes.Judge(mode))
			}
		}
		seen := map[string]bool{}
		for _, list := range [][]string{known.Asking, known.Deciding, known.Settings} {
			for _, mode := range list {
				if seen[mode] {
					t.Errorf("%s: the mode %q stands in two lists", a.ID, mode)
				}
				seen[mode] = true
			}
		}
	}
	if measured < 8 {
		t.Errorf("got the modes of %d agents, want 8 at least", measured)
	}
}

func TestBeginOfUnchosenMode(t *testing.T) {
	t.Parallel()
	known := agents.Modes{Begin: []string{"default", "ask"}, Asking: []string{"default", "plan"}, Deciding: []string{"auto"}, Settings: []string{"build"}}
	for name, tc := range map[string]struct {
		measured bool
		current  string
		offered  []string
		want     string
		ok       bool
	}{
		"it asks":                          {true, "plan", []string{"plan", "default"}, "plan", true},
		"as its settings say":              {true, "build", []string{"build"}, "build", true},
		"it decides":                       {true, "auto", []string{"auto", "default"}, "default", true},
		"it decides, the first is gone":    {true, "auto", []string{"auto", "ask"}, "ask", true},
		"it decides, and none asks":        {true, "auto", []string{"auto", "fresh"}, "", false},
		"unknown":                          {true, "fresh", []string{"fresh", "default"}, "default", true},
		"unknown, and none asks":           {true, "fresh", []string{"fresh"}, "", false},
		"unknown of an unmeasured agent":   {false, "fresh", []string{"fresh", "default"}, "fresh", true},
		"an unmeasured agent that decides": {false, "auto", []string{"auto", "default"}, "default", true},
	} {
		mode, ok := startmode.Of(known, tc.measured).Begin(tc.current, tc.offered)
		if mode != tc.want || ok != tc.ok {
			t.Errorf("%s: Begin(%q, %q) = %q, %v, want %q, %v", name, tc.current, tc.offered, mode, ok, tc.want, tc.ok)
		}
	}
}

func TestLibraryKeepsChoices(t *testing.T) {
	t.Parallel()
	db := storetest.Open(t, t.TempDir())
	defer db.Close()
	l := startmode.NewLibrary(db)
	auto, plan := startmode.Choice{Mode: "auto"}, startmode.Choice{Mode: "plan", Model: "large"}
	for _, put := range []struct {
		agent, directory string
		choice           startmode.Choice
	}{{"a", "", plan}, {"a", "/one", auto}, {"a", "/two", auto}, {"b", "/one", plan}, {"a", "/two", startmode.Choice{}}} {
		if err := l.Choose(t.Context(), put.agent, "local", put.directory, put.choice); err != nil {
			t.Fatal(err)
		}
	}
	for _, tc := range []struct {
		agent, place, directory string
		want                    startmode.Chosen
	}{
		{"a", "local", "/one", startmode.Chosen{Agent: plan, Directory: auto}},
		{"a", "local", "/two", startmode.Chosen{Agent: plan}},
		{"a", "local", "", startmode.Chosen{Agent: plan}},
		{"b", "local", "/one", startmode.Chosen{Directory: plan}},
		{"a", "elsewhere", "/one", startmode.Chosen{}},
	} {
		if got, err := l.Chosen(t.Context(), tc.agent, tc.place, tc.directory); err != nil || got != tc.want {
			t.Errorf("Chosen(%q, %q, %q) = %+v, %v, want %+v", tc.agent, tc.place, tc.directory, got, err, tc.want)
		}
	}
	offer := startmode.Offer{Modes: []startmode.Value{{Value: "auto", Name: "Auto"}}}
	if err := l.Note(t.Context(), "a", "local", "1", offer); err != nil {
		t.Fatal(err)
	}
	if got, version, err := l.Offered(t.Context(), "a", "local"); err != nil || version != "1" || len(got.Modes) != 1 || got.Modes[0] != offer.Modes[0] {
		t.Errorf("Offered = %+v, %q, %v, want %+v", got, version, err, offer)
	}
	if got, version, err := l.Offered(t.Context(), "b", "local"); err != nil || version != "" || len(got.Modes) != 0 {
		t.Errorf("Offered of an agent that nobody has seen = %+v, %q, %v, want nothing", got, version, err)
	}
}
