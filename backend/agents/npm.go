package agents

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/url"
	"os"
	"path"
	"path/filepath"
	"runtime"
	"slices"
	"strings"

	"deskhand/backend/environ"
	"deskhand/backend/proxy"
)

// npm is the command that starts npm: node with the script, or npm alone where npm is no script for node.
type npm struct {
	path string
	args []string
}

// npmSupply installs an agent with npm.
type npmSupply struct {
	*installation
	npm    npm
	linked bool // the download is on the disk, and scripts hard-link it, which would count twice
}

func (i *installation) fromNPM() (supply, error) {
	found, err := findNPM(i.installer.environment)
	return &npmSupply{installation: i, npm: found}, err
}

func findNPM(environment *environ.Environment) (npm, error) {
	node, file := environment.Program("node"), environment.Program("npm")
	switch {
	case node == "":
		return npm{}, fmt.Errorf("node is not on PATH: %s", getNode)
	case file == "":
		return npm{}, fmt.Errorf("npm is not on PATH: %s", getNode)
	}
	real, err := filepath.EvalSymlinks(file)
	if err != nil {
		return npm{}, err
	}
	if runtime.GOOS == "windows" { // npm.cmd would need a shell
		real = filepath.Join(filepath.Dir(real), "node_modules", "npm", "bin", "npm-cli.js")
	}
	if flags, script := nodeScript(real); script {
		return npm{node, append(flags, real)}, nil
	}
	return npm{path: file}, nil // a shim, for example of volta
}

// argv returns npm's command line. Every flag is explicit, so that the user's settings for their own projects do not matter; settings of
// the network (registry, proxy, certificates, tokens) stay the user's.
func (i *npmSupply) argv(command string, more ...string) []string {
	args := append(slices.Clip(i.npm.args), command, "--prefix", i.dir, "--global=false", "--location=project", "--save-exact",
		"--no-audit", "--no-fund", "--no-update-notifier", "--progress=false", "--color=false", "--loglevel=http",
		"--package-lock=true", "--include=prod", "--include=optional", "--omit=dev", "--install-links=false",
		"--omit-lockfile-registry-resolved=false", // sizes are asked at these URLs
		"--engine-strict=false")                   // claude-agent-acp and others demand Node 22 and run on 20; initialize shows whether they do
	if i.installer.cfg.Registry != "" {
		args = append(args, "--registry", i.installer.cfg.Registry)
	}
	return append(args, more...)
}

// resolve has npm write a lock file with the package's dependencies and the integrity of each.
func (i *npmSupply) resolve(ctx context.Context) error {
	if i.installer.cfg.Registry != "" {
		if u, err := url.Parse(i.installer.cfg.Registry); err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Host == "" {
			return fmt.Errorf("%q is no URL of a registry", i.installer.cfg.Registry)
		}
	}
	if err := i.writeProject(); err != nil {
		return err
	}
	if err := i.runNPM(ctx, i.argv("install", "--ignore-scripts=true", "--package-lock-only", "--", i.spec())); err != nil {
		return err
	}
	lock, err := readLock(filepath.Join(i.dir, "package-lock.json"))
	if err != nil {
		return err
	}
	main, ok := lock.Packages["node_modules/"+i.e.known.npm]
	if !ok || main.Version != i.plan.version {
		return fmt.Errorf("npm resolved %s to %q", i.spec(), main.Version)
	}
	i.at = release{Version: main.Version, Package: i.e.known.npm, Integrity: main.Integrity}
	lock.through = i.installer.environment.Proxy()
	i.packages, i.total = lock.count(), lock.size(ctx, main)
	if i.planned {
		i.download = lock.packed(ctx, main)
	}
	return nil
}

// writeProject makes the directory an npm project. Newer versions of npm run only the install scripts of packages that the project names.
func (i *npmSupply) writeProject() error {
	project := map[string]any{"private": true}
	if i.e.known.Scripts {
		project["allowScripts"] = map[string]bool{i.e.known.npm: true}
	}
	data, err := json.Marshal(project)
	if err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(i.dir, "package.json"), data, 0o600)
}

func (i *npmSupply) spec() string { return i.e.known.npm + "@" + i.plan.version }

// fetch installs the locked packages, and runs the package's own install scripts where the package needs them. Scripts of other packages
// never run: some write to the user's home (grok), or change the PATH (qoder).
func (i *npmSupply) fetch(ctx context.Context) error {
	// "npm ci" would refuse a lock file that lacks packages for other systems, which some mirrors do not have.
	if err := i.runNPM(ctx, i.argv("install", "--ignore-scripts=true")); err != nil {
		return err
	}
	if !i.e.known.Scripts {
		return nil
	}
	i.linked = true
	return i.runNPM(ctx, i.argv("rebuild", "--ignore-scripts=false", "--", i.e.known.npm))
}

// program returns the package's program as npx would choose it: by name, or the only program.
func (i *npmSupply) program() (string, error) {
	dir := path.Join("node_modules", i.e.known.npm)
	data, err := os.ReadFile(filepath.Join(i.dir, filepath.FromSlash(dir), "package.json"))
	if err != nil {
		return "", err
	}
	var manifest struct {
		Version string `json:"version"`
		Bin     any    `json:"bin"`
	}
	if err := json.Unmarshal(data, &manifest); err != nil {
		return "", fmt.Errorf("the package's package.json is broken: %w", err)
	}
	if manifest.Version != i.plan.version {
		return "", fmt.Errorf("the package says that it is version %q, not %s", manifest.Version, i.plan.version)
	}
	bins := map[string]any{}
	switch b := manifest.Bin.(type) {
	case string:
		bins[unscoped(i.e.known.npm)] = b
	case map[string]any:
		bins = b
	}
	file, ok := bins[i.e.command].(string)
	if !ok && len(bins) == 1 {
		for _, only := range bins {
			file, ok = only.(string)
		}
	}
	if !ok {
		return "", fmt.Errorf("the package has no program %s", i.e.command)
	}
	return path.Join(dir, path.Clean("/"+file)), nil // confined to the package, whatever the manifest says
}

// runNPM runs npm once.
func (i *npmSupply) runNPM(ctx context.Context, args []string) error {
	cmd := proxy.Command{Path: i.npm.path, Args: args, Env: i.installer.environment.With(nil), Dir: i.dir}
	if cmd.Path == "" {
		return errors.New("npm was not found")
	}
	t := tool{installation: i.installation, name: "npm", why: npmError, measured: i.step == StepDownload && !i.linked}
	return t.run(ctx, cmd)
}

// npmError returns npm's own reason for a failure: the first line of the error that is not a field.
func npmError(tail string) string {
	fields := []string{"code", "syscall", "path", "dest", "errno", "command", "signal"}
	for line := range strings.Lines(tail) {
		text, ok := strings.CutPrefix(strings.TrimSpace(line), "npm error ")
		if first, _, _ := strings.Cut(text, " "); ok && !slices.Contains(fields, first) {
			return text
		}
	}
	return ""
}
