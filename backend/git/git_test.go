package git

import (
	"errors"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"

	"go.uber.org/goleak"

	"deskhand/backend/proxy"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func TestFind(t *testing.T) {
	here, other, file := t.TempDir(), t.TempDir(), "git"
	if runtime.GOOS == "windows" {
		file = "git.exe"
	}
	t.Chdir(here)
	if err := os.WriteFile(file, []byte("#!/bin/sh\n"), 0o700); err != nil {
		t.Fatal(err)
	}
	// What is a directory of that name, or may not be run, is not it.
	if err := os.MkdirAll(filepath.Join(other, "folder", file), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(other, file), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	list := func(dirs ...string) []string {
		return []string{"PATH=" + here, "PATH=" + strings.Join(dirs, string(filepath.ListSeparator))}
	}
	for _, path := range [][]string{{"."}, {""}, {filepath.Join(other, "folder")}} {
		if found, err := Find(list(path...)); !errors.Is(err, ErrAbsent) {
			t.Errorf("%q: %q, %v", path, found, err)
		}
	}
	if runtime.GOOS != "windows" {
		if found, err := Find(list(other, here)); err != nil || found != filepath.Join(here, file) {
			t.Errorf("%q, %v", found, err)
		}
	}
	if _, err := Find(nil); !errors.Is(err, ErrAbsent) {
		t.Error(err)
	}
}

func TestEnviron(t *testing.T) {
	env := Environ([]string{"GIT_DIR=/x", "git_work_tree=/y", "GIT_SSH=ssh", "LC_ALL=de_DE", "LANGUAGE=de", "HOME=/home"}, "GIT_SSH")
	if want := []string{"GIT_SSH=ssh", "HOME=/home", "LC_ALL=C", "GIT_TERMINAL_PROMPT=0", "GIT_OPTIONAL_LOCKS=0"}; !slices.Equal(env, want) {
		t.Errorf("%q", env)
	}
}

func TestRun(t *testing.T) {
	processes, err := proxy.Open(proxy.Config{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := processes.Close(); err != nil {
			t.Error(err)
		}
	})
	environ := os.Environ()
	program, err := Find(environ)
	if err != nil {
		t.Skip(err)
	}
	run := func(args ...string) error {
		return Run(t.Context(), processes, proxy.Command{Path: program, Args: args, Env: Environ(environ), Dir: t.TempDir()}, nil, nil)
	}
	if err := run("--version"); err != nil {
		t.Error(err)
	}
	err = run(append(Settings("core.quotePath=false"), "rev-parse", "--verify", "--quiet", "--git-dir")...)
	status, is := errors.AsType[*StatusError](err)
	if !is || status.Code != 128 || !errors.Is(err, ErrFailed) || !strings.HasPrefix(err.Error(), "fatal: not a git repository") {
		t.Errorf("%v", err)
	}
}
