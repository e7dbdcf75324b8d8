package session_test

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"

	"deskhand/backend/attachment"
	"deskhand/backend/attachments"
	"deskhand/backend/session"
)

// The title of a session leaves out the block of a surface's files.
func TestTitleLeavesOutBlockOfFiles(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	custom(t, dir, map[string]string{"mute": "cat >/dev/null"}) // the agent gives no title of its own
	d := open(t, dir)
	block := attachment.Sentinel([]attachment.SentinelItem{{URL: "https://cdn.discordapp.com/a?ex=1", Filename: "a"}})
	for message, want := range map[string]string{"silent\n" + block: "silent", block: "a.txt"} {
		file, err := d.Attachments().Upload(t.Context(), "a.txt", "text/plain", strings.NewReader("a"))
		if err != nil {
			t.Fatal(err)
		}
		s, err := d.Create(t.Context(), session.New{Agent: "mute", Cwd: d.work})
		if err != nil {
			t.Fatal(err)
		}
		if _, err := d.Send(t.Context(), s.ID, session.Prompt{Message: message, Attachments: []attachments.PromptAttachment{{ID: file.ID}}}); err != nil {
			t.Fatal(err)
		}
		if got := d.get(s.ID).Title; got != want {
			t.Errorf("%q is called %q, want %q", message, got, want)
		}
	}
}

// When an agent withdraws its title, the session is named after its first prompt again, unless a person has named it.
func TestTitleThatAgentTakesBack(t *testing.T) {
	d := askingDesk(t, t.TempDir(), "")
	id := d.asking()
	d.steps(id)
	first := d.get(id).Title
	titled := func(update, want string) {
		t.Helper()
		d.steps(id, step{Update: json.RawMessage(`{"sessionUpdate":"session_info_update",` + update + `}`)})
		if got := d.get(id).Title; got != want {
			t.Errorf("%s: it is called %q, want %q", update, got, want)
		}
	}
	if first == "" {
		t.Fatal("it has no name")
	}
	titled(`"title":"Of the agent"`, "Of the agent")
	titled(`"updatedAt":"2026-01-01T00:00:00Z"`, "Of the agent")
	titled(`"title":7`, "Of the agent")
	titled(`"title":null`, first)
	titled(`"title":"Another"`, "Another")
	if _, err := d.Change(t.Context(), id, session.Patch{Title: new("Mine")}); err != nil {
		t.Fatal(err)
	}
	titled(`"title":null`, "Mine")
}

// An agent that keeps titles is told the one that a person has given, at once or when it is ready, and never the one that it gave itself.
func TestAgentIsToldTitleOfPerson(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	forgetfulAgent(t, dir, "titled resume")
	d := open(t, dir)
	id := d.createOf("forgetful").ID
	d.prompt(id, "hello")
	d.idle(id)
	rename := func(title string) {
		t.Helper()
		if _, err := d.Change(t.Context(), id, session.Patch{Title: &title}); err != nil {
			t.Fatal(err)
		}
	}
	told := func() (list []string) {
		for dir, data := range d.journal(id) {
			var m struct {
				Method string
				Params struct{ SessionID, Title string }
			}
			if dir == "out" && json.Unmarshal(data, &m) == nil && m.Method == "session/set_title" && m.Params.SessionID != "" {
				list = append(list, m.Params.Title)
			}
		}
		return list
	}
	if got := told(); got != nil {
		t.Errorf("titles before a person gave one: got %q, want none", got)
	}
	rename("Lamp")
	d.close()
	d = open(t, dir)
	rename("Bell") // while no agent runs
	d.prompt(id, "go on")
	d.idle(id)
	if got, want := told(), []string{"Lamp", "Bell"}; !slices.Equal(got, want) {
		t.Errorf("titles: got %q, want %q", got, want)
	}
}
