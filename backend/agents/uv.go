package agents

import (
	"context"
	"crypto/sha256"
	"encoding/base64"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"runtime"
	"strings"

	"deskhand/backend/proxy"
)

const getUV = "install uv, which also brings Python where there is none: https://docs.astral.sh/uv"

// The directories of uv in the directory of the version.
const (
	uvTools = "tools" // an environment per tool, of which there is one
	uvBin   = "bin"   // programs to start
)

// uvSupply installs an agent from Python's index with uv, which verifies the index's checksums.
type uvSupply struct {
	*installation
	uv string
}

func (i *installation) fromPython() (supply, error) {
	uv := i.installer.environment.Program("uv")
	if uv == "" {
		return nil, fmt.Errorf("uv is not on PATH: %s", getUV)
	}
	return &uvSupply{i, uv}, nil
}

func (u *uvSupply) spec() string { return u.e.known.python + "==" + u.plan.version }

// resolve checks only the names: uv prints no sizes and cannot resolve a tool without installing the tool.
func (u *uvSupply) resolve(context.Context) error {
	if !validPython.MatchString(u.e.known.python) || !pythonVersion.MatchString(u.plan.version) {
		return fmt.Errorf("%q is no exact version of a Python package", u.spec())
	}
	return nil
}

// fetch has uv make the environment. Both of uv's directories are Deskhand's, so that tools which the person installed with uv are not
// touched; its cache, its network settings, and a Python that uv has to download stay in their usual places. Nothing is built, because a
// build runs a package's own code, as npm's install scripts do.
func (u *uvSupply) fetch(ctx context.Context) error {
	args := []string{"tool", "install", "--no-progress", "--color", "never"}
	if !u.e.known.Scripts {
		args = append(args, "--no-build")
	}
	cmd := proxy.Command{Path: u.uv, Args: append(args, "--", u.spec()), Dir: u.dir, Env: u.installer.environment.With(map[string]string{
		"UV_TOOL_DIR": filepath.Join(u.dir, uvTools), "UV_TOOL_BIN_DIR": filepath.Join(u.dir, uvBin),
	})}
	t := tool{installation: u.installation, name: "uv", why: uvError, measured: true}
	return t.run(ctx, cmd)
}

// uvError returns uv's own reason for a failure: the line of the error, or the text after a cross about packages that do not fit.
func uvError(tail string) string {
	var found []string
	for line := range strings.Lines(tail) {
		line = strings.TrimSpace(line)
		text, isError := strings.CutPrefix(line, "error: ")
		cross, isCross := strings.CutPrefix(line, "×")
		more, isMore := strings.CutPrefix(line, "╰─▶")
		switch {
		case isError:
			return text
		case isCross:
			found = append(found, strings.Trim(cross, " :"))
		case isMore:
			found = append(found, strings.TrimSpace(more))
		}
	}
	return strings.Join(found, ": ")
}

// program returns the tool's program as uvx would choose it: by the name of the package, or the only program.
func (u *uvSupply) program() (string, error) {
	if err := u.check(); err != nil {
		return "", err
	}
	items, err := os.ReadDir(filepath.Join(u.dir, uvBin))
	if err != nil {
		return "", fmt.Errorf("the package has no program: %w", err)
	}
	want := u.e.command
	if runtime.GOOS == "windows" {
		want += ".exe"
	}
	var names []string
	for _, item := range items {
		if item.Name() == want {
			return path.Join(uvBin, want), nil
		}
		names = append(names, item.Name())
	}
	if len(names) != 1 {
		return "", fmt.Errorf("the package has no program %s", u.e.command)
	}
	return path.Join(uvBin, names[0]), nil
}

// check verifies that the requested package is installed. The record of the package names the checksum of each file, so the
// checksum of the record stands for all.
func (u *uvSupply) check() error {
	base, _, _ := strings.Cut(u.e.known.python, "[")
	for _, site := range []string{"lib/python*/site-packages", "Lib/site-packages"} {
		// Not filepath.Glob, which would take the directory itself as a part of the pattern.
		found, err := fs.Glob(os.DirFS(u.dir), path.Join(uvTools, "*", site, "*.dist-info"))
		if err != nil {
			return err
		}
		for _, dir := range found {
			name, version, ok := strings.Cut(strings.TrimSuffix(path.Base(dir), ".dist-info"), "-")
			if !ok || pythonName(name) != pythonName(base) {
				continue
			}
			if version != u.plan.version {
				return fmt.Errorf("uv has installed %s, not %s", version, u.plan.version)
			}
			record, err := os.ReadFile(filepath.Join(u.dir, filepath.FromSlash(dir), "RECORD"))
			if err != nil {
				return fmt.Errorf("the package's record cannot be read: %w", err)
			}
			sum := sha256.Sum256(record)
			u.at = release{Version: version, Package: u.e.known.python, Integrity: "sha256-" + base64.StdEncoding.EncodeToString(sum[:])}
			return nil
		}
	}
	return fmt.Errorf("uv has not installed %s", base)
}

// pythonName returns the normal form of a package's name (PEP 503).
func pythonName(name string) string {
	parts := strings.FieldsFunc(strings.ToLower(name), func(r rune) bool { return strings.ContainsRune("-_.", r) })
	return strings.Join(parts, "-")
}
