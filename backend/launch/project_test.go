package launch_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"deskhand/backend/launch"
	"deskhand/backend/project"
)

// projectIn is a worktree of the fixture's directory.
func (f *fixture) projectIn() launch.ProjectIn {
	top := filepath.Join(filepath.Dir(f.work), "worktree")
	if err := os.MkdirAll(top, 0o700); err != nil {
		f.t.Fatal(err)
	}
	return launch.ProjectIn{Top: top, Repository: f.work, Main: f.work}
}

func (f *fixture) project(in launch.ProjectIn) launch.Project {
	f.t.Helper()
	p, err := f.Project(f.t.Context(), in)
	if err != nil {
		f.t.Fatal(err)
	}
	return p
}

func TestProjectIsApprovedForAllWorktreesByItsContent(t *testing.T) {
	f := open(t)
	in := f.projectIn()
	f.write(project.File, `{"setup": ["sh prepare.sh", "echo ready"], "run": "serve", "copy": [".env"]}`)
	at := func(name, text string) {
		if err := os.WriteFile(filepath.Join(in.Top, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	at("prepare.sh", "echo one\n")
	p := f.project(in)
	e, is := p.Executable(launch.SetUp)
	if !is || e.Approved || !strings.Contains(e.Detail, "sh prepare.sh\necho ready") || !strings.Contains(e.Detail, "prepare.sh\n") || !strings.Contains(e.Detail, ".env") {
		t.Fatalf("the set-up: got %+v, %t; want its commands, the file that they run and the copies, not approved", e, is)
	}
	if err := f.ApproveProject(t.Context(), in, launch.SetUp, e.Hash); err != nil {
		t.Fatal(err)
	}
	for _, top := range []string{in.Top, f.work} {
		other := in
		other.Top = top
		if top == f.work {
			f.write("prepare.sh", "echo one\n")
		}
		if now, _ := f.project(other).Executable(launch.SetUp); !now.Approved {
			t.Errorf("the set-up in %s after it was approved: got %+v, want it approved", top, now)
		}
	}
	if run, is := f.project(in).Executable(launch.Run); !is || run.Approved || run.Detail != "serve" {
		t.Errorf("the command of the app after the set-up was approved: got %+v, %t; want it not approved", run, is)
	}
	at("prepare.sh", "echo two\n")
	if now, _ := f.project(in).Executable(launch.SetUp); now.Approved || now.Before == "" {
		t.Errorf("the set-up after its script has changed: got %+v, want it not approved", now)
	}
	refused(t, f.ApproveProject(t.Context(), in, launch.SetUp, e.Hash), "trust.changed")
	f.write(project.File, `{"setup": ["sh prepare.sh", "echo ready; curl x"]}`)
	at("prepare.sh", "echo one\n")
	if now, _ := f.project(in).Executable(launch.SetUp); now.Approved {
		t.Errorf("the set-up after a command has changed: got %+v, want it not approved", now)
	}
}

func TestProjectIsAmongTheExecutablesOfADirectory(t *testing.T) {
	f := open(t)
	f.write(project.File, `{"setup": "make", "test": "make test"}`)
	f.write("Makefile", "all:\n\techo one\n")
	list := f.listed()
	if len(list) != 2 || list[0].Kind != "project" || list[0].Found() || !strings.Contains(list[0].Detail, "Makefile") {
		t.Fatalf("Executables: got %+v, want the set-up with its Makefile and the tests, which no agent reads", list)
	}
	f.approveAll()
	for _, e := range f.project(f.projectIn()).Executables {
		if e.Name == launch.Test && !e.Approved {
			t.Errorf("the tests in a worktree after the list was approved: got %+v, want them approved", e)
		}
	}
}

func TestProjectTooLongToReadIsNone(t *testing.T) {
	f := open(t)
	f.write(project.File, `{"setup": "`+strings.Repeat("x", 40<<10)+`"}`)
	if p, err := f.Project(t.Context(), f.projectIn()); err == nil {
		t.Errorf("Project with a command of 40 KiB: got %d executables, want an error", len(p.Executables))
	}
}
