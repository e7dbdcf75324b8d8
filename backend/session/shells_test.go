package session_test

import (
	"errors"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"

	"deskhand/backend/files"
	"deskhand/backend/host"
	"deskhand/backend/processes"
	"deskhand/backend/proxy"
	"deskhand/backend/session"
	"deskhand/backend/shells"
	"deskhand/backend/testkit"
)

// openShells is a desk whose person has /bin/sh, with a prompt that tests can find.
func openShells(t *testing.T, cfg session.Config) *desk {
	t.Helper()
	if runtime.GOOS == "windows" {
		t.Skip("there are no terminals")
	}
	t.Setenv("SHELL", "/bin/sh")
	t.Setenv("PS1", "ready> ")
	t.Setenv("ENV", "")
	t.Setenv("DESKHAND_TOKEN", "our-own-token")
	t.Setenv("PERSONAL", "their own")
	return openAs(t, t.TempDir(), proxy.Config{Purpose: processes.ForSession}, cfg)
}

func (d *desk) shell(id string, n shells.NewShell) shells.Shell {
	d.t.Helper()
	sh, err := d.Shells().Open(d.t.Context(), id, n)
	if err != nil {
		d.t.Fatal(err)
	}
	return sh
}

func (d *desk) shells(id string) []shells.Shell {
	d.t.Helper()
	list, err := d.Shells().List(d.t.Context(), id)
	if err != nil || list.Off != "" {
		d.t.Fatal(list, err)
	}
	return list.Items
}

// page is a page that shows a terminal.
type page struct {
	d    *desk
	id   string
	next int64
	text string
	last shells.TerminalOutput
}

func (p *page) until(words string) {
	p.d.t.Helper()
	for deadline := time.Now().Add(testkit.Limit); !strings.Contains(p.text, words); {
		out, err := p.d.Shells().Read(p.d.t.Context(), p.id, p.next, time.Second)
		if err != nil || time.Now().After(deadline) {
			p.d.t.Fatalf("%q does not come: %q %v", words, p.text, err)
		}
		p.next, p.text, p.last = out.Next, p.text+string(out.Data), out
	}
}

func (p *page) types(line string) {
	p.d.t.Helper()
	if err := p.d.Shells().Type(p.id, []byte(line+"\r")); err != nil {
		p.d.t.Fatal(err)
	}
}

func TestShellOfPersonIsReadAndTypedInto(t *testing.T) {
	d := openShells(t, session.Config{})
	s := d.create()
	sh := d.shell(s.ID, shells.NewShell{Cols: 101, Rows: 33})
	if sh.Number != 1 || sh.Name != "sh" || !sh.Running || sh.Directory != d.work || sh.Session != s.ID {
		t.Errorf("Open: got %+v, want number 1, sh, running in %s of session %s", sh, d.work, s.ID)
	}
	first := &page{d: d, id: sh.ID}
	first.until("ready> ")
	first.types(`echo "<$(pwd)> <$TERM> <$(stty size)> <$DESKHAND_TOKEN> <$PERSONAL>"`)
	first.until("<" + d.work + "> <xterm-256color> <33 101> <> <their own>")

	// A page that is loaded again gets the whole output, marked as shown before: a program that queried the screen has its answer already.
	again := &page{d: d, id: d.shells(s.ID)[0].ID}
	again.until("<their own>")
	if !strings.HasPrefix(again.text, first.text[:10]) || again.last.Seen == 0 || again.last.Seen < first.last.From {
		t.Errorf("terminal read anew: got %q, %+v; want all of it, seen up to %d or further", again.text, again.last, first.last.From)
	}

	// The terminal is listed among the processes of its session, and is no agent.
	list, err := d.Processes().List(false)
	if err != nil {
		t.Fatal(err)
	}
	found := false
	for _, p := range list.Items {
		if p.Owner == shells.ForPerson {
			found = p.Session == s.ID && p.Agent == "sh"
		}
	}
	if !found {
		t.Errorf("Processes: got %+v, want sh of session %s", list.Items, s.ID)
	}

	// The number of a closed terminal is used again; another session has its own numbers.
	second := d.shell(s.ID, shells.NewShell{})
	if err := d.Shells().End(t.Context(), sh.ID); err != nil {
		t.Fatal(err)
	}
	if _, err := d.Shells().Read(t.Context(), sh.ID, 0, 0); !errors.Is(err, session.ErrNotFound) {
		t.Errorf("Read(%s) after its end = %v, want ErrNotFound", sh.ID, err)
	}
	third := d.shell(s.ID, shells.NewShell{})
	if second.Number != 2 || third.Number != 1 || len(d.shells(s.ID)) != 2 || len(d.shells(d.create().ID)) != 0 {
		t.Errorf("terminals: got %+v and %+v, want numbers 2 and 1, 2 in this session and none in another", second, third)
	}

	// A terminal whose shell has ended keeps its last output.
	last := &page{d: d, id: second.ID}
	last.until("ready> ")
	last.types("echo good''bye; exit 7")
	last.until("goodbye")
	d.until("end of the shell", func() bool { return !d.shells(s.ID)[1].Running })
	if now := d.shells(s.ID)[1]; now.ExitCode == nil || *now.ExitCode != 7 || now.EndedAt == nil {
		t.Errorf("terminal after exit 7: got %+v, want its code and time", now)
	}
	refused(t, d.Shells().Type(second.ID, []byte("x")), "terminal.ended")
}

func TestShellStartsInDirectoryOfSession(t *testing.T) {
	within := files.Within{}
	d := openShells(t, session.Config{Files: &host.Files{Open: within.Open, Write: within.Write, Directory: within.Directory}})
	below := filepath.Join(d.work, "below")
	further := t.TempDir()
	if err := os.Mkdir(below, 0o700); err != nil {
		t.Fatal(err)
	}
	s, err := d.Create(t.Context(), session.New{Agent: "mock", Cwd: d.work, Directories: []string{further}})
	if err != nil {
		t.Fatal(err)
	}
	for _, dir := range []string{below, further} {
		p := &page{d: d, id: d.shell(s.ID, shells.NewShell{Directory: dir}).ID}
		p.until("ready> ")
		p.types(`echo "in <$(pwd)>"`)
		p.until("in <" + dir + ">")
	}
	for _, dir := range []string{"below", t.TempDir(), "/", filepath.Join(d.work, "none")} {
		_, err := d.Shells().Open(t.Context(), s.ID, shells.NewShell{Directory: dir})
		refused(t, err, "terminal.directory")
	}
	if err := os.RemoveAll(d.work); err != nil {
		t.Fatal(err)
	}
	_, err = d.Shells().Open(t.Context(), s.ID, shells.NewShell{})
	refused(t, err, "directory.missing")
	if _, err := d.Shells().Open(t.Context(), "none", shells.NewShell{}); !errors.Is(err, session.ErrNotFound) {
		t.Errorf("Open(none) = %v, want ErrNotFound", err)
	}
}

func TestShellsAreLimited(t *testing.T) {
	d := openShells(t, session.Config{})
	s := d.create()
	for range 12 {
		d.shell(s.ID, shells.NewShell{})
	}
	_, err := d.Shells().Open(t.Context(), s.ID, shells.NewShell{})
	refused(t, err, "terminal.too_many")
	// Ended terminals do not count, and the oldest of them are removed.
	for _, sh := range d.shells(s.ID) {
		(&page{d: d, id: sh.ID}).types("exit")
	}
	d.until("their end", func() bool {
		list := d.shells(s.ID)
		for _, sh := range list {
			if sh.Running {
				return false
			}
		}
		return len(list) == 8
	})
	if sh := d.shell(s.ID, shells.NewShell{}); !sh.Running {
		t.Errorf("Open after others have ended: got %+v, want it running", sh)
	}
}

func TestShellsEndWithErasure(t *testing.T) {
	d := openShells(t, session.Config{Undo: time.Hour})
	s, other := d.create(), d.create()
	sh, left := d.shell(s.ID, shells.NewShell{}), d.shell(other.ID, shells.NewShell{})
	running := func() (ids []string) {
		list, err := d.Processes().List(false)
		if err != nil {
			t.Fatal(err)
		}
		for _, p := range list.Items {
			if p.Owner == shells.ForPerson {
				ids = append(ids, p.Session)
			}
		}
		return ids
	}
	// The terminals run as long as the deletion can be undone.
	d.delete(s.ID)
	d.restore(s.ID)
	if got := d.shells(s.ID); len(got) != 1 || got[0].ID != sh.ID || !got[0].Running {
		t.Errorf("terminals of the restored session: got %+v, want %s running", got, sh.ID)
	}
	d.delete(s.ID)
	if err := d.Erase(t.Context(), s.ID); err != nil { // as when that time has passed
		t.Fatal(err)
	}
	d.until("end of the shell", func() bool { ids := running(); return len(ids) == 1 && ids[0] == other.ID })
	if _, err := d.Shells().Read(t.Context(), sh.ID, 0, 0); !errors.Is(err, session.ErrNotFound) {
		t.Errorf("Read(%s) after the erasure = %v, want ErrNotFound", sh.ID, err)
	}
	p := &page{d: d, id: left.ID}
	p.until("ready> ")
	p.types("exec sleep 3600")
	d.close() // goleak and the set report anything that does not end with the program
}

// A session at a place has no terminals, since they would run on this machine.
func TestShellIsAbsentAtPlace(t *testing.T) {
	t.Parallel()
	e := runtimeElsewhere(t, 0)
	d := deskWithPlaces(t, t.TempDir())
	s := d.createAt(d.addPlace(e, placeToken).ID)
	if list, err := d.Shells().List(t.Context(), s.ID); err != nil || list.Off != "terminal.elsewhere" || len(list.Items) != 0 {
		t.Errorf("terminals at a place: got %+v, %v; want none, off as terminal.elsewhere", list, err)
	}
	_, err := d.Shells().Open(t.Context(), s.ID, shells.NewShell{})
	refused(t, err, "terminal.elsewhere")
	_, err = d.Roots(t.Context(), s.ID)
	refused(t, err, "paths.elsewhere")
}
