package testkit

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
)

// Deskhand returns the path of the program itself, without a window and without the race detector: a test program that runs itself again as
// the program starts four times as slowly. Its version is "test". The first call in a process builds the program into build/bin of the module,
// which is quick where the program is up to date.
func Deskhand(tb testing.TB) string {
	tb.Helper()
	path, err := deskhand()
	if err != nil {
		tb.Fatalf("testkit.Deskhand: got error %v, want the built program", err)
	}
	return path
}

//nolint:gochecknoglobals // the program is built once in a process
var deskhand = sync.OnceValues(func() (string, error) { return Build("deskhand-of-tests", "deskhand", "-ldflags=-X main.version=test") })

// began is the directory in which the test program began: a test may have left it before the first program is built.
//
//nolint:gochecknoglobals // read once
var began, _ = os.Getwd()

// Build builds a package of the module into build/bin, and returns the path of the file. Test programs may build the same package at the same
// time.
func Build(name, pkg string, flags ...string) (string, error) {
	list := exec.Command("go", "list", "-m", "-f", "{{.Dir}}")
	list.Dir = began
	module, err := list.Output()
	if err != nil {
		return "", fmt.Errorf("find the module: %w", err)
	}
	bin := filepath.Join(strings.TrimSpace(string(module)), "build", "bin")
	if err := os.MkdirAll(bin, 0o755); err != nil {
		return "", err
	}
	path := filepath.Join(bin, name)
	// Test programs that start at the same time build a file each. go build links nothing into a file that is up to date.
	built := fmt.Sprintf("%s.%d", path, os.Getpid())
	if old, err := os.ReadFile(path); err == nil {
		if err := os.WriteFile(built, old, 0o755); err != nil {
			return "", err
		}
	}
	build := exec.Command("go", append(append([]string{"build"}, flags...), "-o", built, pkg)...)
	build.Dir = began
	if out, err := build.CombinedOutput(); err != nil {
		_ = os.Remove(built)
		return "", fmt.Errorf("build %s: %w\n%s", pkg, err, out)
	}
	return path, os.Rename(built, path)
}
