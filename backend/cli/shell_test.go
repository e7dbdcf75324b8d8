//go:build !windows

package cli_test

import (
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"deskhand/backend/testkit"
)

// hangingShell gives the test a home whose login shell reports its start and never answers.
func hangingShell(t *testing.T) (started func() bool) {
	t.Helper()
	bash, err := exec.LookPath("bash")
	if err != nil {
		t.Fatal(err)
	}
	home := t.TempDir()
	if err := os.WriteFile(filepath.Join(home, ".profile"), []byte("echo $$ >~/started; sleep 3600\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	t.Setenv("HOME", home)
	t.Setenv("SHELL", bash)
	return func() bool {
		data, err := os.ReadFile(filepath.Join(home, "started"))
		return err == nil && strings.HasSuffix(string(data), "\n")
	}
}

// TestServerDoesNotWaitForTheLoginShell: the server answers while the shell hangs, and exits without waiting for the shell.
func TestServerDoesNotWaitForTheLoginShell(t *testing.T) {
	var took time.Duration
	for range 3 { // the machine may have been busy
		if took = serveBesideAHangingShell(t); took < 9*time.Second { // the shell has ten seconds
			return
		}
	}
	t.Errorf("server beside a hanging shell: got its answer and end in %v, want less than 9s", took)
}

func serveBesideAHangingShell(t *testing.T) time.Duration {
	t.Helper()
	started := hangingShell(t)
	t.Setenv("DESKHAND_LOGIN_SHELL", "")
	p, url := server(t, t.TempDir())
	for deadline := time.Now().Add(testkit.Limit); !started(); time.Sleep(5 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("login shell: got it not asked, want it asked\n%s", p.stderr)
		}
	}
	base, _, _ := strings.Cut(url, "/#")
	began := time.Now()
	response, err := http.Get(base + "/v1/health")
	if err != nil {
		t.Fatal(err)
	}
	response.Body.Close()
	if response.StatusCode != http.StatusUnauthorized { // a status of 401 proves that the server answers
		t.Error(response.Status)
	}
	if err := p.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	if _, code := p.end(); code != 0 {
		t.Errorf("deskhand server after SIGTERM: got exit %d\n%s\nwant 0", code, p.stderr)
	}
	return time.Since(began)
}

func TestServerLeavesTheLoginShellAlone(t *testing.T) {
	started := hangingShell(t)
	p, _ := server(t, t.TempDir())
	if err := p.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	if _, code := p.end(); code != 0 || started() {
		t.Errorf("deskhand server without the login shell: got exit %d, shell started %v; want 0, false", code, started())
	}
}
