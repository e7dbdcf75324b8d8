package cli_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"deskhand/backend/testkit"
)

// repository is a directory for a repository, in which a person's commands run, with data of its own. Git knows the person as Ada.
type repository struct {
	t          *testing.T
	data, work string
	env        []string
	self       string // the program
}

// inRepository makes the directory, which is not yet a repository. env has further variables.
func inRepository(t *testing.T, env ...string) *repository {
	t.Helper()
	data := t.TempDir()
	at, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	r := &repository{t: t, data: data, work: filepath.Join(at, "app"), self: testkit.Deskhand(t)}
	if err := os.Mkdir(r.work, 0o700); err != nil {
		t.Fatal(err)
	}
	config := filepath.Join(data, "gitconfig")
	testWrite(t, config, "[user]\n\tname = Ada\n\temail = ada@example.org\n")
	r.env = append(append(os.Environ(), "DESKHAND_LOGIN_SHELL=off", "DESKHAND_CATALOGUE_URL=off", "DESKHAND_DATA_DIR="+data, "DESKHAND_DEMO_STATE="+filepath.Join(data, "demo"),
		"DISPLAY=", "WAYLAND_DISPLAY=", "GIT_CONFIG_GLOBAL="+config, "GIT_CONFIG_NOSYSTEM=1"), env...)
	return r
}

func (r *repository) command(program string, args ...string) *exec.Cmd {
	cmd := exec.CommandContext(r.t.Context(), program, args...)
	cmd.Dir, cmd.Env = r.work, r.env
	return cmd
}

// run runs deskhand.
func (r *repository) run(args ...string) (out, errs string, code int) {
	r.t.Helper()
	cmd := r.command(r.self, args...)
	var stdout, stderr strings.Builder
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	_ = cmd.Run()
	return stdout.String(), stderr.String(), cmd.ProcessState.ExitCode()
}

// must runs a program that has to succeed, and returns what it has written.
func (r *repository) must(program string, args ...string) string {
	r.t.Helper()
	out, err := r.command(program, args...).CombinedOutput()
	if err != nil {
		r.t.Fatalf("%s %q: got %v, want no error\n%s", filepath.Base(program), args, err, out)
	}
	return strings.TrimSpace(string(out))
}
