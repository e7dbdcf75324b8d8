// Package starters tells from the files of a directory what a person may ask first in it. The package hides in which files projects name
// their test command.
package starters

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"deskhand/backend/refusal"
	"deskhand/backend/sample"
)

// Starters holds hints for a first message in a directory, from the directory's files.
type Starters struct {
	Files      bool   `json:"files" doc:"There is something in it"`
	Repository bool   `json:"repository" doc:"It is the top of a git worktree"`
	Tests      string `json:"tests,omitempty" doc:"The command that runs its tests"`
	Sample     bool   `json:"sample,omitempty" doc:"It is the sample project of the demo agent"`
}

// maxManifest is how many bytes of a project file are read.
const maxManifest = 256 << 10

// In reads the names in a directory of this machine, and the files in which projects name their test command. In starts no
// program: not even git, which would run commands of the directory's own configuration.
func In(cwd string) (Starters, error) {
	if !filepath.IsAbs(cwd) {
		return Starters{}, refusal.Bad("directory.relative", "path", cwd)
	}
	root, err := os.OpenRoot(cwd)
	if err != nil {
		if errors.Is(err, fs.ErrNotExist) {
			return Starters{}, nil // surfaces show a missing directory elsewhere
		}
		return Starters{}, err
	}
	defer func() { _ = root.Close() }()
	found := startersIn(root)
	found.Sample = sample.In(cwd)
	return found, nil
}

func startersIn(root *os.Root) Starters {
	var found Starters
	if dir, err := root.Open("."); err == nil {
		names, _ := dir.Readdirnames(2) // two names, since .git alone does not count
		_ = dir.Close()
		found.Files = len(names) > 1 || len(names) == 1 && names[0] != ".git"
	}
	_, err := root.Lstat(".git")
	found.Repository = err == nil
	for _, look := range []struct {
		file    string
		command string
		tells   func([]byte) bool
	}{
		{"Makefile", "make test", hasTarget},
		{"justfile", "just test", hasTarget},
		{"package.json", "npm test", hasScript},
		{"go.mod", "go test ./...", always},
		{"Cargo.toml", "cargo test", always},
		{"pyproject.toml", "pytest", mentionsPytest},
		{"pytest.ini", "pytest", always},
		{"mix.exs", "mix test", always},
		{"gradlew", "./gradlew test", always},
		{"pom.xml", "mvn test", always},
	} {
		if text, ok := manifest(root, look.file); ok && look.tells(text) {
			found.Tests = look.command
			break
		}
	}
	return found
}

// manifest reads a regular file of a directory, up to maxManifest bytes.
func manifest(root *os.Root, name string) ([]byte, bool) {
	if info, err := root.Stat(name); err != nil || !info.Mode().IsRegular() {
		return nil, false
	}
	f, err := root.Open(name)
	if err != nil {
		return nil, false
	}
	defer func() { _ = f.Close() }()
	text, err := io.ReadAll(io.LimitReader(f, maxManifest))
	return text, err == nil
}

func always([]byte) bool { return true }

func mentionsPytest(text []byte) bool { return bytes.Contains(text, []byte("pytest")) }

// hasTarget reports whether a line begins with a target named test.
func hasTarget(text []byte) bool {
	lines := bufio.NewScanner(bytes.NewReader(text))
	for lines.Scan() {
		if name, _, ok := strings.Cut(lines.Text(), ":"); ok && strings.TrimSpace(name) == "test" && !strings.HasPrefix(name, "\t") {
			return true
		}
	}
	return false
}

// hasScript reports whether there is a script named test, other than the one that npm writes into a new package.
func hasScript(text []byte) bool {
	var doc struct {
		Scripts map[string]string `json:"scripts"`
	}
	script := ""
	if json.Unmarshal(text, &doc) == nil {
		script = doc.Scripts["test"]
	}
	return script != "" && !strings.Contains(script, "no test specified")
}
